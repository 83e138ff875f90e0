import { element, svg } from "./dom.js";
import { rove } from "./keys.js";
import { ROW_PIXELS } from "./number_block.js";
import { formatShare } from "./numbers.js";
import { showNumber } from "./vector_numbers.js";

const LINES_PIXELS = 56;
const BAR_PIXELS = 36; // of the largest number
const FAINTEST = 0.004; // of the attention: what has a line

/** The tokens that look, as buttons. */
export class TokenButtons {
  /**
   * @param {Array<{text: string}>} tokens
   * @param {function(number)} press gets the token that is clicked, or on which Enter is pressed.
   */
  constructor(tokens, press) {
    this.buttons = tokens.map(({ text }, index) => element(
      "button",
      { type: "button", class: "neuron-token", title: text, onclick: () => press(index) },
      text,
    ));
    const about = { class: "neuron-column", role: "group", "aria-label": "query tokens" };
    this.body = element("div", about, this.buttons);
    rove(this.body, this.buttons);
  }

  /**
   * Show which token is kept.
   *
   * @param {number|null} token
   */
  keep(token) {
    this.buttons.forEach((button, index) => {
      button.setAttribute("aria-pressed", String(index === token));
    });
  }
}

/** The key tokens; screen readers read their numbers with them. */
export class SeenTokens {
  /** @param {Array<{text: string}>} tokens */
  constructor(tokens) {
    this.texts = tokens.map((token) => token.text);
    this.rows = this.texts.map((text) => element("li", { class: "neuron-token", title: text }));
    this.body = element("ol", { class: "neuron-column" }, this.rows);
  }

  /**
   * Point at a token.
   *
   * @param {number|null} token from 0.
   */
  mark(token) {
    this.rows.forEach((row, index) => row.classList.toggle("marked", index === token));
  }

  /**
   * @param {number[]} scores of all tokens.
   * @param {Float32Array} weights of all tokens.
   */
  update(scores, weights) {
    this.rows.forEach((row, index) => {
      const numbers = `: score ${showNumber(scores[index])}, ${formatShare(weights[index])}`;
      row.replaceChildren(
        this.texts[index], element("span", { class: "for-ears" }, numbers));
    });
  }
}

/** Lines from the query token to all key tokens, the stronger the higher the attention. */
export class AttentionLines {
  /** @param {number} numRows of the longer column. */
  constructor(numRows) {
    const size = { width: LINES_PIXELS, height: numRows * ROW_PIXELS };
    this.body = svg("svg", { ...size, class: "neuron-lines", "aria-hidden": "true" });
  }

  /**
   * @param {number} token the one that looks.
   * @param {Float32Array} weights of all tokens.
   * @param {string} color
   */
  update(token, weights, color) {
    const middle = (row) => (row + 0.5) * ROW_PIXELS;
    const lines = Array.from(weights, (weight, other) => svg("line", {
      x1: 0, y1: middle(token), x2: LINES_PIXELS, y2: middle(other), stroke: color,
      "stroke-width": 1 + 2 * weight, "stroke-opacity": Math.sqrt(weight),
    }));
    this.body.replaceChildren(...lines.filter((_, other) => weights[other] >= FAINTEST));
  }
}

/** A number for each token, with a bar as long as it is large; blue is positive. */
export class NumberBars {
  /**
   * @param {number} numTokens
   * @param {function(number): string} show a number in words.
   */
  constructor(numTokens, show) {
    this.show = show;
    this.rows = Array.from({ length: numTokens }, () => {
      const bar = element("span", { class: "neuron-bar" });
      const text = element("span", { class: "neuron-figure" });
      return { bar, text, root: element("div", { class: "neuron-number" }, text, bar) };
    });
    const roots = this.rows.map((row) => row.root);
    this.body = element("div", { class: "neuron-column", "aria-hidden": "true" }, roots);
  }

  /** @param {ArrayLike<number>} values of all tokens. */
  update(values) {
    const sizes = Array.from(values, (value) => (Number.isNaN(value) ? 0 : Math.abs(value)));
    const largest = Math.max(...sizes) || 1;
    this.rows.forEach(({ bar, text }, index) => {
      text.textContent = this.show(values[index]);
      bar.classList.toggle("negative", values[index] < 0);
      bar.style.setProperty("width", `${(BAR_PIXELS * sizes[index]) / largest}px`);
    });
  }
}
