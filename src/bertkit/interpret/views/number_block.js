import { diverging } from "./color.js";
import { element, svg } from "./dom.js";
import { chooseTicks, showNumber } from "./vector_numbers.js";

/** Height of a row of numbers, and of the token beside it. */
export const ROW_PIXELS = 22;
const RULER_PIXELS = 18;
const LABEL_PIXELS = 28;
const NAME_PIXELS = 12; // the narrowest column that has its name above it
const NAMES_PIXELS = 72;
const NAME_LENGTH = 11;
const NUM_SHADES = 32; // on either side of zero

/** Rows of numbers as colors: a canvas with a pixel for each number, enlarged by the styles. */
export class NumberBlock {
  /**
   * @param {string} name for those who don't see it.
   * @param {number} numRows
   * @param {number} numColumns
   * @param {number} columnWidth in pixels.
   * @param {string[]} names of the columns, which stand above them where there is room; without
   *   names they have numbers.
   */
  constructor(name, numRows, numColumns, columnWidth, names = []) {
    Object.assign(this, { name, numRows, numColumns, columnWidth });
    this.canvas = element("canvas", {
      width: numColumns, height: numRows, role: "img", "aria-label": name,
    });
    this.rowMark = mark("block-row", "height", ROW_PIXELS);
    this.columnMark = mark("block-column", "width", columnWidth);
    const size = {
      width: `${numColumns * columnWidth}px`, height: `${numRows * ROW_PIXELS}px`,
    };
    this.body = element(
      "div", { class: "block", style: size }, this.canvas, this.rowMark, this.columnMark);
    this.scale = element("div", { class: "block-scale" });
    const hasNames = names.length > 0 && columnWidth >= NAME_PIXELS;
    this.ruler = hasNames ? drawNames(names, columnWidth) : drawRuler(numColumns, columnWidth);
  }

  /**
   * Draw numbers in place of those before.
   *
   * @param {Array<Float32Array|null>} rows null for one that stays empty, NaN for a number.
   * @param {number} limit the size that has the strongest color.
   */
  paint(rows, limit) {
    const shades = Array.from({ length: 2 * NUM_SHADES + 1 }, (_, index) =>
      diverging(index - NUM_SHADES, NUM_SHADES));
    const brush = this.canvas.getContext("2d");
    brush.clearRect(0, 0, this.numColumns, this.numRows);
    rows.forEach((row, index) => row?.forEach((value, column) => {
      if (Number.isNaN(value)) return;
      const share = Math.max(-1, Math.min(1, value / limit));
      brush.fillStyle = shades[Math.round(NUM_SHADES * (1 + share))];
      brush.fillRect(column, index, 1, 1);
    }));
    const bar = element("span", { class: "block-shades" });
    this.scale.replaceChildren(showNumber(-limit), bar, showNumber(limit));
  }

  /**
   * Point at a row and a column.
   *
   * @param {number|null} row from 0.
   * @param {number|null} column from 0.
   */
  mark(row, column) {
    this.rowMark.hidden = row === null;
    this.columnMark.hidden = column === null;
    this.rowMark.style.setProperty("top", `${row * ROW_PIXELS}px`);
    this.columnMark.style.setProperty("left", `${column * this.columnWidth}px`);
  }

  /**
   * Let the block be reached by Tab.
   *
   * @param {function(KeyboardEvent)} listen gets the keys that are pressed on it.
   */
  takeKeys(listen) {
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "application");
    this.body.setAttribute("aria-label", `${this.name}; the arrow keys move from one to the next`);
    this.body.addEventListener("keydown", listen);
  }

  /**
   * The number that is under the pointer.
   *
   * @param {MouseEvent} event on the body.
   * @returns {{row: number, column: number}} from 0.
   */
  locate(event) {
    const box = this.body.getBoundingClientRect();
    const find = (place, size, count) =>
      Math.max(0, Math.min(count - 1, Math.floor((place / size) * count)));
    return {
      row: find(event.clientY - box.top, box.height, this.numRows),
      column: find(event.clientX - box.left, box.width, this.numColumns),
    };
  }
}

function mark(name, side, size) {
  return element("div", { class: name, hidden: true, style: { [side]: `${size}px` } });
}

function drawRuler(numColumns, columnWidth) {
  const ticks = chooseTicks(numColumns, columnWidth, LABEL_PIXELS).flatMap((column) => {
    const x = (column + 0.5) * columnWidth;
    return [
      svg("line", { x1: x, y1: RULER_PIXELS - 4, x2: x, y2: RULER_PIXELS }),
      svg("text", { x, y: RULER_PIXELS - 7, "text-anchor": "middle" }, column + 1),
    ];
  });
  const size = { width: numColumns * columnWidth, height: RULER_PIXELS };
  return svg("svg", { ...size, class: "block-ruler", "aria-hidden": "true" }, ticks);
}

function drawNames(names, columnWidth) {
  const texts = names.map((name, column) => {
    const x = (column + 0.5) * columnWidth + 4;
    const shown = name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH - 1)}…` : name;
    const y = NAMES_PIXELS - 4;
    return svg("text", { x, y, transform: `rotate(-90 ${x} ${y})` }, shown);
  });
  const size = { width: names.length * columnWidth, height: NAMES_PIXELS };
  return svg("svg", { ...size, class: "block-ruler", "aria-hidden": "true" }, texts);
}
