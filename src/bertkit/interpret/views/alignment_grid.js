import { color, inkOn, mix } from "./color.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { scrollBox } from "./scroll.js";

const MIN_WRITTEN = 0.095; // a share that stands in its cell
const STRENGTH = 0.75; // the power of a share that is its color: small ones stay small
const PIXELS = 640; // the longest side of a grid without names

/** A grid in which each token has its name, and each large share its number. */
export class NamedGrid {
  /**
   * @param {string[]} columns names.
   * @param {number} numRows
   * @param {function(number|null, number|null)} read is told the row and the column that are
   *   pointed at, or null.
   * @param {function(number)} press gets the row that is clicked.
   */
  constructor(columns, numRows, read, press) {
    this.heads = columns.map((name) => element(
      "th", { scope: "col", title: name }, element("span", { dir: "auto" }, name)));
    const button = { type: "button", class: "alignment-name", dir: "auto" };
    this.names = Array.from({ length: numRows }, (_, row) =>
      element("button", { ...button, onclick: () => press(row) }));
    this.cells = Array.from({ length: numRows }, () => columns.map(() => element("td")));
    this.read = read;
    this.root = scrollBox(this.build(press));
  }

  build(press) {
    const rows = this.cells.map((cells, row) =>
      element("tr", {}, element("th", { scope: "row" }, this.names[row]), cells));
    const table = element(
      "table",
      { class: "alignment", onpointerleave: () => this.point(null, null) },
      element("thead", {}, element("tr", {}, element("td"), this.heads)),
      element("tbody", {}, rows),
    );
    this.cells.forEach((cells, row) => cells.forEach((cell, column) => {
      cell.addEventListener("pointerenter", () => this.point(row, column));
      cell.addEventListener("focus", () => this.point(row, column));
      cell.addEventListener("click", () => press(row));
      cell.addEventListener("keydown", ({ key }) => key === "Enter" && press(row));
    }));
    rove(table, this.cells.flat(), this.heads.length);
    rove(table, this.names);
    return table;
  }

  /**
   * Draw shares in place of those before.
   *
   * @param {Float32Array[]} rows
   * @param {string[]} names of the rows.
   * @param {number|null} kept the row that was chosen.
   */
  draw(rows, names, kept) {
    const [none, full] = [color("panel"), color("c0")];
    rows.forEach((shares, row) => {
      this.names[row].textContent = names[row];
      this.names[row].setAttribute("aria-pressed", String(row === kept));
      shares.forEach((share, column) => {
        const cell = this.cells[row][column];
        const shade = mix(none, full, share ** STRENGTH);
        cell.style.setProperty("background-color", shade);
        cell.style.setProperty("color", inkOn(shade));
        cell.textContent = share >= MIN_WRITTEN ? Math.round(100 * share) : "";
        cell.setAttribute("aria-label", `${names[row]}, ${this.heads[column].title}: ${
          Math.round(100 * share)} %`);
      });
    });
  }

  point(row, column) {
    this.names.forEach((name, index) => name.classList.toggle("pointed", index === row));
    this.heads.forEach((head, index) => head.classList.toggle("pointed", index === column));
    this.read(row, column);
  }
}

/** A grid of texts that are too long for names: a point for each pair. */
export class PlainGrid {
  /**
   * @param {string[]} columns names, of which only their number counts.
   * @param {number} numRows
   * @param {function(number|null, number|null)} read as of `NamedGrid`.
   * @param {function(number)} press as of `NamedGrid`.
   */
  constructor(columns, numRows, read, press) {
    this.sizes = [numRows, columns.length];
    const scale = PIXELS / Math.max(...this.sizes);
    const [height, width] = this.sizes.map((size) => Math.max(8, size * scale));
    this.canvas = element("canvas", {
      role: "img", class: "alignment-plain", width: columns.length, height: numRows,
      "aria-label": "attention of all pairs of tokens",
      style: { width: `${width}px`, height: `${height}px` },
      onpointermove: (event) => read(...this.locate(event)),
      onpointerleave: () => read(null, null),
      onclick: (event) => press(this.locate(event)[0]),
    });
    this.root = scrollBox(this.canvas);
  }

  /** As of `NamedGrid`. */
  draw(rows) {
    const brush = this.canvas.getContext("2d");
    const shades = Array.from({ length: 256 }, (_, step) =>
      mix(color("panel"), color("c0"), step / 255));
    rows.forEach((shares, row) => shares.forEach((share, column) => {
      brush.fillStyle = shades[Math.round(255 * share ** STRENGTH)];
      brush.fillRect(column, row, 1, 1);
    }));
  }

  locate({ offsetX, offsetY }) {
    const sides = [offsetY / this.canvas.clientHeight, offsetX / this.canvas.clientWidth];
    return sides.map((share, side) =>
      Math.max(0, Math.min(this.sizes[side] - 1, Math.floor(share * this.sizes[side]))));
  }
}
