import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { HeadDialog } from "./head_dialog.js";
import { rove } from "./keys.js";
import { scrollBox } from "./scroll.js";
import { drawThumbnail } from "./thumbnails.js";

const STYLES = [
  { value: "squares", text: "squares", title: "a row for each query token" },
  { value: "lines", text: "lines", title: "from tokens on the left to tokens on the right" },
];

/** All heads of all layers at a glance. */
export const view = {
  name: "model",
  controls: [],
  mount(root, page) {
    root.append(...new ModelView(page).build());
  },
};

class ModelView {
  constructor(page) {
    this.page = page;
    this.style = "squares";
    this.rows = Array.from({ length: page.model.layers }, (_, index) => this.buildRow(index + 1));
    this.dialog = new HeadDialog(page);
    page.subscribe((_, changed) => changed.includes("theme") && this.redraw());
  }

  build() {
    const observer = new IntersectionObserver((entries) => this.drawSeen(entries), {
      rootMargin: "200px",
    });
    this.rows.forEach((row) => observer.observe(row.root));
    addEventListener("beforeprint", () => this.rows.forEach((row) => this.drawRow(row)));
    return [this.buildStyles(), this.buildGrid(), this.dialog.root];
  }

  buildStyles() {
    const { root, show } = choiceChips("Draw as", STYLES, (style) => {
      this.style = style;
      show(style);
      this.redraw();
    });
    show(this.style);
    root.classList.add("options");
    return root;
  }

  buildGrid() {
    const { heads } = this.page.model;
    const numbers = Array.from({ length: heads }, (_, index) =>
      element("span", { class: "quiet", "aria-hidden": "true" }, index + 1),
    );
    const top = element("div", { class: "model-row model-top" }, element("span"), numbers);
    const grid = element(
      "div",
      {
        class: "model-grid", role: "group", style: { "--heads": heads },
        "aria-label": "all heads, a row for each layer",
      },
      top,
      this.rows.map((row) => row.root),
    );
    rove(grid, this.rows.flatMap((row) => row.cells), heads);
    return scrollBox(grid);
  }

  buildRow(layer) {
    const heads = this.page.patterns[layer - 1];
    const cells = heads.map((pattern, index) => this.buildCell(layer, index + 1, pattern));
    const title = element("span", { class: "quiet" }, `Layer ${layer}`);
    const root = element("div", { class: "model-row" }, title, cells);
    return { layer, root, cells, isDrawn: false };
  }

  buildCell(layer, head, pattern) {
    const isOff = this.page.without.includes(`${layer}.${head}`);
    const name = isOff ? "off" : pattern.name;
    return element(
      "button",
      {
        type: "button", class: `model-cell${isOff ? " off" : ""}`, title: `head ${layer}.${head}`,
        "aria-label": `head ${layer}.${head}: ${name}`,
        onclick: () => this.dialog.open(layer, head),
      },
      element("canvas", { "aria-hidden": "true" }),
      element("span", { class: name === "mixed" ? "quiet" : null }, name),
    );
  }

  /** Draw the rows that have come into sight. */
  drawSeen(entries) {
    const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    this.rows.filter((row) => seen.includes(row.root)).forEach((row) => this.drawRow(row));
  }

  async drawRow(row) {
    if (row.isDrawn) {
      return;
    }
    row.isDrawn = true;
    const weights = await this.page.weights(row.layer);
    row.cells.forEach((cell, index) => {
      drawThumbnail(cell.querySelector("canvas"), weights, index + 1, this.style);
    });
  }

  /** Draw again what has been drawn, and from now on. */
  redraw() {
    for (const row of this.rows.filter((one) => one.isDrawn)) {
      row.isDrawn = false;
      this.drawRow(row);
    }
  }
}
