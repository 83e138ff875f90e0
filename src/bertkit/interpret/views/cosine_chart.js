import { svg } from "./dom.js";

const WIDTH = 460;
const HEIGHT = 280;
const [LEFT, RIGHT, TOP, BOTTOM] = [40, 68, 12, 44];
const NAME_HEIGHT = 13;
const DASHES = { c1: "7 4", c2: "2 4", c3: "9 3 2 3", c4: "12 5", c5: "4 2", quiet: "1 3" };

/**
 * Lines of cosines over the layers, each named at its end.
 *
 * @param {Array<{name: string, title: string, hue: string, values: Array<number|null>}>} series
 * @param {number} shownLayer is marked.
 * @param {string} label what is drawn, for those who don't see it.
 * @returns {SVGElement}
 */
export function cosineChart(series, shownLayer, label) {
  const numLayers = series[0].values.length;
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  const ticks = cosineTicks(values);
  const across = (layer) => LEFT + ((WIDTH - LEFT - RIGHT) * layer) / (numLayers - 1);
  const low = ticks[0];
  const upwards = (value) =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (value - low)) / (1 - low);
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "cosine-chart", role: "img", "aria-label": label },
    ticks.map((tick) => gridLine(upwards(tick), tick.toFixed(1))),
    svg("line", {
      class: "shown-layer", x1: across(shownLayer), x2: across(shownLayer), y1: TOP,
      y2: HEIGHT - BOTTOM,
    }),
    layerNames(numLayers, across),
    series.map((one) => drawLine(one, across, upwards)),
    endNames(series, upwards),
  );
}

/**
 * Where the axis of cosines is labeled: from below the lowest value to 1.
 *
 * @param {number[]} values
 * @returns {number[]} ascending; the last is 1.
 */
export function cosineTicks(values) {
  const lowest = values.reduce((least, value) => Math.min(least, value), 0.8);
  const step = 1 - lowest > 0.6 ? 0.2 : 0.1;
  const count = Math.ceil((1 - lowest) / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => 1 - (count - index) * step);
}

/**
 * Move labels on a line apart, so that none lies on another; their order stays.
 *
 * @param {number[]} places
 * @param {number} distance between two.
 * @param {number} end where the line ends.
 * @returns {number[]}
 */
export function spread(places, distance, end) {
  const order = places.map((_, index) => index).sort((a, b) => places[a] - places[b]);
  const moved = [...places];
  order.reduce((least, index) => {
    moved[index] = Math.max(moved[index], least);
    return moved[index] + distance;
  }, -Infinity);
  order.reduceRight((most, index) => {
    moved[index] = Math.min(moved[index], most);
    return moved[index] - distance;
  }, end);
  return moved;
}

function gridLine(y, text) {
  return [
    svg("line", { class: "grid-line", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
    svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, text),
  ];
}

function layerNames(numLayers, across) {
  const stride = Math.ceil(numLayers / 13);
  const layers = Array.from({ length: numLayers }, (_, layer) => layer);
  const middle = (LEFT + WIDTH - RIGHT) / 2;
  return [
    ...layers.filter((layer) => layer % stride === 0).map((layer) =>
      svg("text", { x: across(layer), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, layer),
    ),
    svg("text", { x: middle, y: HEIGHT - 8, "text-anchor": "middle" },
      "layer (0: embeddings)"),
  ];
}

function drawLine({ title, hue, values }, across, upwards) {
  const points = values.flatMap((value, layer) =>
    value === null ? [] : [`${across(layer).toFixed(1)},${upwards(value).toFixed(1)}`],
  );
  return svg(
    "polyline",
    {
      points: points.join(" "), "stroke-dasharray": DASHES[hue],
      style: { stroke: `var(--${hue})` },
    },
    svg("title", {}, title),
  );
}

function endNames(series, upwards) {
  const named = series.filter(({ values }) => values.at(-1) !== null);
  const places = named.map(({ values }) => upwards(values.at(-1)) + 4);
  return spread(places, NAME_HEIGHT, HEIGHT - BOTTOM + 4).map((y, index) =>
    svg(
      "text",
      { x: WIDTH - RIGHT + 8, y, style: { fill: `var(--${named[index].hue})` } },
      named[index].name,
    ),
  );
}
