import { cosineChart } from "./cosine_chart.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { tellShares } from "./plane_layout.js";
import { PlanePlot } from "./plane_plot.js";
import { scrollBox } from "./scroll.js";

const NUM_HUES = 6;
const SMALL = { width: 420, height: 320, margin: 40 };

/** One word in several places: where its vectors lie, and how much they have in common. */
export class ContextsPanel {
  /**
   * @param {Object} contexts {word, places: [[before, word, after]], cosines:
   *   [layer][place][place], mean: [layer], different: [layer], planes: [layer]}
   */
  constructor(contexts) {
    this.contexts = contexts;
    this.chosen = 0;
    this.pointed = null;
    this.plot = new PlanePlot(
      `“${contexts.word}” in its contexts, on a plane`,
      contexts.places.map((quote, place) => ({
        text: String(place + 1), name: `${place + 1}: ${quote.join("")}`, hue: hueOf(place),
      })),
      [],
      { point: (place) => this.point(place), keep: (place) => this.choose(place ?? 0) },
      SMALL,
    );
    this.buttons = contexts.places.map((quote, place) => this.quoteButton(quote, place));
    const list = element("div", { class: "quotes", role: "group", "aria-label": "places" },
      this.buttons);
    rove(list, this.buttons);
    this.shares = element("p", { class: "quiet" });
    this.numbers = element("div", { class: "plane-numbers" });
    this.root = element(
      "section", { class: "contexts" },
      element("h2", {}, "How ", element("q", {}, contexts.word), " changes with its context"),
      element("p", { class: "quiet" },
        "Choose a place: the lines show how much the word's vector there has in common with its "
        + "vectors in the other places, layer by layer. 1 is the same direction. The gray line is "
        + "the mean of words that are different, in different texts: what isn't above it is no "
        + "likeness."),
      list,
      element(
        "div", { class: "plane-row" },
        element("div", { class: "plane-side" }, this.shares, this.plot.root), this.numbers,
      ),
    );
  }

  quoteButton([before, word, after], place) {
    const badge = element("span", {
      class: "badge", style: { background: `var(--${hueOf(place)})` },
    }, place + 1);
    const quote = element("span", { dir: "auto" }, before, element("b", {}, word), after);
    return element(
      "button",
      {
        type: "button", class: "quote", onclick: () => this.choose(place),
        onpointerenter: () => this.point(place), onpointerleave: () => this.point(null),
      },
      badge, quote,
    );
  }

  show(layer) {
    this.layer = layer;
    const { points, shares } = this.contexts.planes[layer];
    this.shares.textContent = tellShares(shares, points.length);
    this.plot.show(points);
    this.draw();
  }

  choose(place) {
    this.chosen = place;
    this.draw();
  }

  point(place) {
    this.pointed = place;
    this.plot.highlight(place, [], this.chosen);
  }

  draw() {
    this.buttons.forEach((button, place) => {
      button.setAttribute("aria-pressed", String(place === this.chosen));
    });
    const series = listSeries(this.contexts, this.chosen);
    this.plot.highlight(this.pointed, [], this.chosen);
    const caption = `cosine of place ${this.chosen + 1} with the others, layer by layer`;
    this.numbers.replaceChildren(
      cosineChart(series, this.layer, caption),
      scrollBox(numberTable(series, this.layer, caption)),
    );
  }
}

/**
 * What is drawn for a chosen place: a series for each other place, and the two means.
 *
 * @param {Object} contexts as `ContextsPanel` takes it.
 * @param {number} chosen
 * @returns {Array<{name: string, title: string, hue: string, values: Array<number|null>}>} a value
 *   for each layer, the embeddings first; null where there is none.
 */
export function listSeries({ places, cosines, mean, different }, chosen) {
  const others = places.map((_, place) => place).filter((place) => place !== chosen);
  return [
    ...others.map((place) => ({
      name: String(place + 1),
      title: `place ${place + 1}`,
      hue: hueOf(place),
      values: cosines.map((layer) => layer[chosen][place]),
    })),
    ...(places.length > 2
      ? [{ name: "mean", title: "mean of all places", hue: "text", values: mean }]
      : []),
    { name: "different", title: "different words", hue: "quiet", values: different },
  ];
}

function numberTable(series, shownLayer, caption) {
  const heads = series.map(({ name, title }) =>
    element("th", { scope: "col", class: "number", title }, name),
  );
  const rows = series[0].values.map((_, layer) =>
    element(
      "tr", { class: layer === shownLayer ? "shown" : null },
      element("th", { scope: "row" }, layer === 0 ? "embeddings" : layer),
      series.map(({ values }) =>
        element("td", { class: "number" }, values[layer]?.toFixed(3) ?? "–"),
      ),
    ),
  );
  return element("table", { class: "cosines" },
    element("caption", { class: "quiet" }, caption),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "layer"), heads)),
    element("tbody", {}, rows));
}

function hueOf(place) {
  return `c${place % NUM_HUES}`;
}
