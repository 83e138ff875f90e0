import { color, headColor } from "./color.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { findLines, findShares } from "./lines.js";
import { formatCount, formatShare } from "./numbers.js";
import { shareSentence, shareTable } from "./shares.js";

const FEW_TOKENS = 24; // whose weak lines don't hide the others
const MANY_TOKENS = 64;
const ROW_HEIGHT = 26;
const SMALL_ROW_HEIGHT = 20;
const MAX_CANVAS_PIXELS = 16000; // in height; browsers refuse much larger ones
const LIMITS = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]; // steps of the slider
const FAINTEST = { light: 0.25, dark: 0.5 }; // how strong the lines of a chosen token are at least
const MIN_SHARE = 0.01; // what is less isn't written beside a token

/** Lines from each token to those that it attends to. */
export const view = {
  name: "heads",
  controls: ["layer", "heads", "pairs"],
  mount(root, page) {
    return new HeadView(root, page).draw();
  },
};

class HeadView {
  constructor(root, page) {
    this.page = page;
    this.hovered = null;
    this.numRows = Math.max(page.tokens.length, page.others.length);
    this.rowHeight = this.numRows > MANY_TOKENS ? SMALL_ROW_HEIGHT : ROW_HEIGHT;
    this.limit = LIMITS.indexOf(this.numRows > FEW_TOKENS ? 0.05 : 0.02);
    this.sides = {
      from: this.buildTokens("from", page.tokens), to: this.buildTokens("to", page.others),
    };
    this.canvas = element("canvas", { role: "img" });
    this.note = element("p", { class: "quiet" });
    this.details = element("div", { class: "head-details" });
    this.sentence = element("p", { class: "for-ears", "aria-live": "polite" });
    root.append(this.buildSlider(), this.buildDrawing(), this.sentence);
    page.subscribe(() => this.draw());
    new ResizeObserver(() => this.drawSoon()).observe(this.canvas.parentElement);
  }

  buildTokens(side, tokens) {
    return tokens.map((token, index) =>
      element(
        "button",
        {
          type: "button", class: `token${startsText(tokens, index) ? " starts" : ""}`,
          "aria-pressed": "false",
          onclick: () => this.keep(index, side),
          onpointerenter: (event) => event.pointerType !== "touch" && this.hover(index, side),
          onfocus: (event) => event.target.matches(":focus-visible") && this.hover(index, side),
          onblur: () => this.hover(null, side),
        },
        element("span", { class: "token-text", dir: "auto" }, token.text),
        element("span", { class: "token-share" }),
      ),
    );
  }

  buildSlider() {
    const slider = element("input", {
      type: "range", min: 0, max: LIMITS.length - 1, value: this.limit, id: "head-limit",
      oninput: () => {
        this.limit = Number(slider.value);
        this.drawSoon();
      },
    });
    const label = element(
      "label", { for: "head-limit", class: "chips-label" }, "Draw lines of at least",
    );
    this.limitText = element("output", { for: "head-limit" });
    return element("div", { class: "head-limit options" }, label, slider, this.limitText, this.note);
  }

  buildDrawing() {
    const column = (side, title) =>
      element(
        "div", { class: `tokens tokens-${side}` },
        element("div", { class: "quiet tokens-title" }, title), this.sides[side],
      );
    const drawing = element(
      "div",
      {
        class: "head-drawing", style: { "--row": `${this.rowHeight}px` },
        onpointerleave: () => this.hover(null),
        onkeydown: (event) => event.key === "Escape" && this.release(),
      },
      column("from", "query"),
      element("div", { class: "head-lines" }, this.canvas),
      column("to", "key"),
    );
    // two by two, so that the arrows go down a column and across to the other; beside what is
    // longer, the last of the shorter stands again
    const { from, to } = this.sides;
    const pairs = Array.from({ length: this.numRows }, (_, row) =>
      [from, to].map((tokens) => tokens[Math.min(row, tokens.length - 1)]));
    rove(drawing, pairs.flat(), 2);
    return element("div", { class: "head-view" }, drawing, this.details);
  }

  hover(token, side) {
    this.hovered = token === null ? null : { token, side };
    this.drawSoon();
  }

  keep(token, side) {
    const { state } = this.page;
    const isKept = state.token === token && state.side === side;
    this.page.set({ token: isKept ? null : token, side });
  }

  release() {
    this.hover(null);
    this.page.set({ token: null });
  }

  /** The token that is isolated: for a moment, or by a click. */
  get focus() {
    const { token, side } = this.page.state;
    return this.hovered ?? (token === null ? null : { token, side });
  }

  /** Draw once before the browser shows the next picture, however many reasons there are. */
  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  async draw() {
    const { layer } = this.page.state;
    const weights = await this.page.weights(layer);
    if (layer !== this.page.state.layer) {
      return; // another layer was chosen meanwhile, and is drawn
    }
    const { focus } = this;
    const found = this.findLines(weights, focus);
    this.showLimit(found);
    this.drawLines(found.lines, focus === null ? 0.04 : FAINTEST[this.page.state.theme]);
    const shares = focus && findShares(weights, this.page, this.page.state, focus);
    this.markTokens(focus, shares);
    this.details.replaceChildren(shareTable(this.page, focus, shares));
    this.sentence.textContent = shareSentence(this.page, focus, shares);
  }

  /** The lines; those of all tokens are kept, since every move away from a token needs them. */
  findLines(weights, focus) {
    const { layer, heads, pairs } = this.page.state;
    const find = () => findLines(weights, this.page, {
      heads, pairs, focus, threshold: LIMITS[this.limit],
    });
    if (focus !== null) {
      return find();
    }
    const name = JSON.stringify([layer, heads, pairs, this.limit]);
    if (this.whole?.name !== name) {
      this.whole = { name, found: find() };
    }
    return this.whole.found;
  }

  showLimit({ numLeft, shareLeft }) {
    this.limitText.textContent = formatShare(LIMITS[this.limit]);
    this.note.textContent = numLeft === 0 ? "" : `${formatCount(numLeft)} weaker lines with`
      + ` ${formatShare(shareLeft)} of the attention aren't drawn.`;
  }

  /** Draw the lines, none of them fainter than `faintest`, from 0 to 1. */
  drawLines(lines, faintest) {
    const { width } = this.canvas.parentElement.getBoundingClientRect();
    const height = this.rowHeight * this.numRows;
    const scale = Math.min(devicePixelRatio, MAX_CANVAS_PIXELS / height);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.setProperty("height", `${height}px`);
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    for (const { head, from, to, weight } of lines) {
      const [start, end] = [(from + 0.5) * this.rowHeight, (to + 0.5) * this.rowHeight];
      context.globalAlpha = faintest + (1 - faintest) * weight;
      context.lineWidth = 1 + 5 * weight;
      context.strokeStyle = headColor(head);
      context.beginPath();
      context.moveTo(0, start);
      context.bezierCurveTo(width / 2, start, width / 2, end, width, end);
      context.stroke();
    }
    this.canvas.setAttribute("aria-label", `${formatCount(lines.length)} lines of attention`);
  }

  markTokens(focus, shares) {
    const { state } = this.page;
    const tint = state.heads.length === 1 ? headColor(state.head) : color("c0");
    this.canvas.closest(".head-drawing").style.setProperty("--tint", tint);
    for (const [side, buttons] of Object.entries(this.sides)) {
      const isOther = focus !== null && focus.side !== side;
      buttons.forEach((button, index) => {
        const isFocus = focus?.token === index && focus.side === side;
        const share = isOther ? (shares[index]?.mean ?? 0) : 0;
        const isLoud = share >= MIN_SHARE;
        const isKept = state.token === index && state.side === side;
        button.setAttribute("aria-pressed", String(isKept));
        button.classList.toggle("in-focus", isFocus);
        button.classList.toggle("dimmed", focus !== null && !isFocus && !isLoud);
        button.lastChild.textContent = isLoud ? formatShare(share) : "";
        button.style.setProperty("--share", share);
      });
    }
  }
}

/** Whether a token is the first of the second text. */
function startsText(tokens, index) {
  return index > 0 && tokens[index].segment !== tokens[index - 1].segment;
}
