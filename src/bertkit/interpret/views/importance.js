// The importance view: a map of how much each head matters, and what the model says.

import { choiceChips } from "./chips.js";
import { diverging } from "./color.js";
import { element } from "./dom.js";
import {
  describeEffect, describeMap, describeMeasure, findLargest, rankHeads, showSigned, showSize,
} from "./head_ranking.js";
import { rove } from "./keys.js";
import { describeOutcome } from "./predictions.js";

const MODES = [
  { value: "ablation", text: "switched off", title: "what changes without each head" },
  { value: "gradient", text: "gradient", title: "how the loss reacts to each head" },
];
const NUM_RANKED = 8;

export const view = {
  name: "importance",
  controls: [],
  mount(root, page) {
    const { data } = page;
    root.append(element("p", {}, describeMeasure(data)));
    const modes = MODES.filter(({ value }) => data[value] !== null);
    if (modes.length > 0) {
      const map = new HeadMap(page, modes);
      root.append(map.root);
      page.subscribe(() => map.paint());
    }
    root.append(describeOutcome(page));
  },
};

class HeadMap {
  constructor(page, modes) {
    this.page = page;
    this.modes = modes;
    this.without = new Set(page.without);
    this.cells = page.data[modes[0].value].flatMap((row, layer) =>
      row.map((_, head) => this.buildCell(layer + 1, head + 1)),
    );
    this.details = element("p", { class: "importance-details", "aria-live": "polite" });
    this.caption = element("caption");
    this.scale = element("p", { class: "importance-scale quiet" });
    this.ranking = element("ol", { class: "importance-ranking" });
    this.choice = choiceChips("Heads are", modes, (mode) => this.show(mode));
    this.root = this.build();
    this.show(modes[0].value);
  }

  build() {
    const map = element("div", {}, this.buildTable(), this.scale, this.details);
    const heading = element("h2", {}, "The heads that matter most here");
    const ranking = element("div", {}, heading, this.ranking);
    return element(
      "div", {},
      this.modes.length > 1 ? this.choice.root : null,
      element("div", { class: "importance" }, map, ranking),
    );
  }

  buildTable() {
    const { layers, heads } = this.page.model;
    const count = (number) => Array.from({ length: number }, (_, index) => index + 1);
    const names = count(heads).map((head) => element("th", { scope: "col" }, head));
    const rows = count(layers).map((layer) => {
      const cells = this.cells.slice((layer - 1) * heads, layer * heads);
      const name = element("th", { scope: "row" }, layer);
      return element("tr", {}, name, cells.map((cell) => element("td", {}, cell)));
    });
    const corner = element("th", { class: "quiet" }, "layer \\ head");
    const body = element("tbody", {}, rows);
    rove(body, this.cells, heads);
    return element(
      "table", { class: "importance-map" }, this.caption,
      element("thead", {}, element("tr", {}, corner, names)), body,
    );
  }

  buildCell(layer, head) {
    const isOff = this.without.has(`${layer}.${head}`);
    const tell = () => this.tell(layer, head);
    return element(
      "button",
      {
        type: "button", class: "importance-cell", onclick: () => this.open(layer, head),
        onmouseenter: tell, onfocus: tell,
      },
      isOff ? "off" : null,
    );
  }

  /** Show one of the maps. */
  show(mode) {
    this.mode = mode;
    this.choice.show(mode);
    this.caption.textContent = describeMap(this.page.data.kind, mode);
    this.rows = this.page.data[mode];
    this.ranking.replaceChildren(...rankHeads(this.rows, NUM_RANKED).map((one) => this.rank(one)));
    this.details.textContent = "Point at a cell to read its value; click or tap it to see what the"
      + " head attends to.";
    this.paint();
  }

  rank({ layer, head }) {
    const open = () => this.open(layer, head);
    const button = element("button", { type: "button", class: "chip", onclick: open },
      `${layer}.${head}`);
    return element("li", {}, button, " ", this.describe(layer, head));
  }

  /** Color all cells, as the theme and the chosen map want it. */
  paint() {
    const largest = findLargest(this.rows);
    const { layer: chosenLayer, head: chosenHead } = this.page.state;
    this.cells.forEach((cell, index) => {
      const { layer, head } = this.locate(index);
      const value = this.rows[layer - 1][head - 1];
      cell.style.setProperty("--shade", diverging(value, largest));
      cell.setAttribute("aria-label", `head ${layer}.${head}: ${this.describe(layer, head)}`);
      const isChosen = layer === chosenLayer && head === chosenHead;
      cell.classList.toggle("is-chosen", isChosen);
    });
    this.scale.replaceChildren(...this.buildScale(largest));
  }

  locate(index) {
    const { heads } = this.page.model;
    return { layer: Math.floor(index / heads) + 1, head: (index % heads) + 1 };
  }

  buildScale(largest) {
    const isSigned = this.rows.flat().some((value) => value < 0);
    const steps = isSigned ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
    const show = isSigned ? showSigned : showSize;
    return steps.map((step) =>
      element("span", {},
        element("i", { style: { "--shade": diverging(step, 1) } }), show(step * largest)),
    );
  }

  describe(layer, head) {
    if (this.without.has(`${layer}.${head}`)) {
      return "it is switched off already";
    }
    return describeEffect(this.page.data, this.mode, this.rows[layer - 1][head - 1]);
  }

  tell(layer, head) {
    const { name } = this.page.patterns[layer - 1][head - 1];
    this.details.textContent = `Head ${layer}.${head}: ${this.describe(layer, head)}.`
      + ` Its pattern on this text: ${name}.`;
  }

  open(layer, head) {
    this.page.set({ layer, heads: [head], head });
    this.page.show("heads");
  }
}
