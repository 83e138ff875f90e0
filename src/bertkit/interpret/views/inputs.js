import { diverging } from "./color.js";
import { element } from "./dom.js";
import { NumberBlock, ROW_PIXELS } from "./number_block.js";
import { scrollBox } from "./scroll.js";
import { showNumber } from "./vector_numbers.js";

const STEPS = 127;
const MIN_COLUMN_PIXELS = 2;
const MAX_COLUMN_PIXELS = 5;
const BLOCK_ROOM = 280; // pixels for tokens, positions and the signs between the blocks
const BLOCKS = [
  ["token", "token", "the word"],
  ["position", "+ position", "its place"],
  ["segment", "+ segment", "text A or B"],
  ["sum", "→ layer norm", "= input of layer 1"],
];

/** The embeddings of each token and their sum; positions and sines; two words swapped. */
export const view = {
  name: "inputs",
  controls: [],
  mount(root, page) {
    const inputs = new InputView(root, page);
    page.subscribe((_, changed) => changed.includes("theme") && inputs.paint());
  },
};

class InputView {
  constructor(root, page) {
    this.page = page;
    const numShown = page.data.blocks.sum.rows[0].length;
    this.advice = `Dimensions 1–${numShown} of ${page.data.numDimensions}. Point at a cell, or tap it,`
      + " to read its number.";
    this.said = element("p", { class: "said quiet", role: "status" }, this.advice);
    this.blocks = this.buildBlocks(root.clientWidth);
    this.maps = ["learned", "sines"].flatMap((kind) => buildMaps(kind, page.data.positions[kind]));
    if (page.data.swap !== null) {
      root.append(...buildSwap(page.data.swap));
    }
    const heading = element("h2", {}, "Three embeddings, their sum, and layer norm");
    root.append(heading, this.said, this.buildTable(), ...this.buildPositions());
    root.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.say(this.advice); // a lifted finger leaves, too
    });
    this.paint();
  }

  buildBlocks(width) {
    const numColumns = this.page.data.blocks.sum.rows[0].length;
    const room = Math.floor((width - BLOCK_ROOM) / BLOCKS.length / numColumns);
    const pixels = Math.max(MIN_COLUMN_PIXELS, Math.min(MAX_COLUMN_PIXELS, room));
    return BLOCKS.map(([name, title, about]) => {
      const { rows } = this.page.data.blocks[name];
      const block = new NumberBlock(`${name} embeddings`, rows.length, numColumns, pixels);
      onPoint(block.body, (event) => this.readBlock(name, block, event));
      return { name, title, about, block };
    });
  }

  buildTable() {
    const { tokens } = this.page;
    const list = (texts, name) => element("ol", { class: "neuron-column number" },
      texts.map((text) => element("li", { class: name, title: text }, text)));
    const names = list(tokens.map(({ text }) => text), "neuron-token");
    const hasTwo = this.page.texts[1] !== null;
    const columns = [
      column("", "", names),
      column("", "position", list(tokens.map((_, index) => String(index + 1)), "quiet")),
      hasTwo ? column("", "segment", list(tokens.map(({ segment }) => "AB"[segment]), "quiet")) : null,
      ...this.blocks.map(({ title, about, block }) =>
        column(title, about, block.body, block.scale, block.ruler)),
    ];
    const table = element("div", { class: "neuron-table" }, columns);
    table.style.setProperty("--row", `${ROW_PIXELS}px`);
    return scrollBox(table);
  }

  buildPositions() {
    const figures = this.maps.map((map) => {
      onPoint(map.canvas, (event) => this.readMap(map, event));
      return buildFigure(map);
    });
    return [
      element("h2", {}, "Positions: learned, and sines"),
      element("div", { class: "heat-maps" }, figures),
    ];
  }

  paint() {
    for (const { name, block } of this.blocks) {
      const { rows, limit } = this.page.data.blocks[name];
      block.paint(rows.map((row) => row.map((step) => (step * limit) / STEPS)), limit);
    }
    this.maps.forEach(paintMap);
  }

  say(text) {
    this.said.textContent = text;
  }

  readBlock(name, block, event) {
    const { row, column: dimension } = block.locate(event);
    const { rows, limit } = this.page.data.blocks[name];
    const value = showNumber((rows[row][dimension] * limit) / STEPS);
    const what = name === "sum" ? "input" : `${name} embedding`;
    this.say(`${what} of “${this.page.tokens[row].text}” (${row + 1}), dimension`
      + ` ${dimension + 1} of ${this.page.data.numDimensions}: ${value}`);
  }

  readMap({ canvas, part, columns, title }, event) {
    const find = (offset, size, count) =>
      Math.max(0, Math.min(count - 1, Math.floor((offset / size) * count)));
    const row = find(event.offsetY, canvas.clientHeight, part.rows.length);
    const place = find(event.offsetX, canvas.clientWidth, part.rows[0].length);
    const value = showNumber((part.rows[row][place] * part.limit) / STEPS);
    this.say(`${title}: position ${row + 1}, ${columns} ${place + 1}: ${value}`);
  }
}

/** Be told where a pointer moves, and where a finger taps. */
function onPoint(node, listen) {
  node.addEventListener("pointermove", listen);
  node.addEventListener("pointerdown", listen);
}

/** A map with its two axes and a caption. */
function buildFigure({ title, about, canvas, columns, part }) {
  const axis = (name, last) =>
    ["1", name, last].map((text) => element("span", {}, text));
  const caption = element("figcaption", {}, element("b", {}, title), " ", about);
  return element(
    "figure", { class: "heat-map" },
    element("div", { class: "heat-rows", "aria-hidden": "true" }, axis("position", part.rows.length)),
    canvas,
    element("div", { class: "heat-columns", "aria-hidden": "true" },
      axis(columns, part.rows[0].length)),
    caption,
  );
}

function column(title, about, ...parts) {
  const body = parts.shift();
  const names = [element("b", {}, title), element("small", {}, about)];
  const head = element("div", { class: "neuron-head" }, names, parts);
  return element("div", { class: "neuron-part" }, head, body);
}

function buildMaps(kind, { table, cosines }) {
  const name = kind === "learned" ? "Learned positions" : "Sines";
  const [numRows, numColumns] = [table.rows.length, table.rows[0].length];
  return [
    makeMap(`${name}.`, table, "dimension",
      `${numRows} positions × ${numColumns} dimensions.`),
    makeMap(`${name}, cosine.`, cosines, "position",
      "Each position with each."),
  ];
}

function makeMap(title, part, columns, about) {
  const size = { width: part.rows[0].length, height: part.rows.length };
  const canvas = element("canvas", { ...size, role: "img", "aria-label": `${title} ${about}` });
  return { title, part, columns, about, canvas };
}

function paintMap({ canvas, part }) {
  const brush = canvas.getContext("2d");
  const shades = new Map();
  part.rows.forEach((row, y) => row.forEach((step, x) => {
    if (!shades.has(step)) {
      shades.set(step, diverging(step, STEPS));
    }
    brush.fillStyle = shades.get(step);
    brush.fillRect(x, y, 1, 1);
  }));
}

function buildSwap({ words, text, rows }) {
  const [first, second] = words;
  const heading = ["cosine before and after", "with positions", "without positions"];
  const table = element(
    "table", {},
    element("thead", {}, element("tr", {}, heading.map((name, index) =>
      element("th", { scope: "col", class: index === 0 ? null : "number" }, name)))),
    element("tbody", {}, rows.map(([name, ...cosines]) => element(
      "tr", {},
      element("td", {}, name),
      cosines.map((cosine) => element("td", { class: "number" }, cosine.toFixed(3))),
    ))),
  );
  return [
    element("h2", {}, `“${first}” and “${second}” swapped`),
    element("p", {}, text),
    element("p", { class: "quiet" }, "How similar the vectors of this text and of the original are."
      + " Without positions, every token gets the embedding of position 1."),
    scrollBox(table),
  ];
}
