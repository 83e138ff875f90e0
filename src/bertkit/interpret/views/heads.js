import { headColour } from "./colour.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { findLines, findShares } from "./lines.js";
import { formatCount, formatShare } from "./numbers.js";
import { shareTable } from "./shares.js";

const MANY_TOKENS = 64;
const ROW_HEIGHT = 26;
const SMALL_ROW_HEIGHT = 20;
const MAX_CANVAS_PIXELS = 16000; // in height; browsers refuse much larger ones
const LIMITS = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];

/** Lines from each token to those that it looks at. */
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
    this.isMany = page.tokens.length > MANY_TOKENS;
    this.rowHeight = this.isMany ? SMALL_ROW_HEIGHT : ROW_HEIGHT;
    this.limit = this.isMany ? 4 : 1;
    this.sides = { from: this.buildTokens("from"), to: this.buildTokens("to") };
    this.canvas = element("canvas", { role: "img" });
    this.note = element("p", { class: "quiet" });
    this.details = element("div", { class: "head-details", "aria-live": "polite" });
    root.append(this.buildSlider(), this.buildDrawing());
    page.subscribe(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
  }

  buildTokens(side) {
    return this.page.tokens.map((token, index) =>
      element(
        "button",
        {
          type: "button", class: "token", "aria-pressed": "false",
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
        this.draw();
      },
    });
    const label = element("label", { for: "head-limit", class: "chips-label" }, "Draw from");
    this.limitText = element("output", { for: "head-limit" });
    return element("div", { class: "head-limit" }, label, slider, this.limitText, this.note);
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
      column("from", "looks …"),
      element("div", { class: "head-lines" }, this.canvas),
      column("to", "… at"),
    );
    // two by two, so that the arrows go down a column and across to the other
    rove(drawing, this.sides.from.flatMap((token, index) => [token, this.sides.to[index]]), 2);
    return element("div", { class: "head-view" }, drawing, this.details);
  }

  hover(token, side) {
    this.hovered = token === null ? null : { token, side };
    this.draw();
  }

  keep(token, side) {
    const { state } = this.page;
    const isKept = state.token === token && state.side === side;
    this.page.set({ token: isKept ? null : token, side });
  }

  release() {
    this.hovered = null;
    this.page.set({ token: null });
    this.draw();
  }

  /** The token that is isolated, by a click or for a moment. */
  get focus() {
    const { token, side } = this.page.state;
    return this.hovered ?? (token === null ? null : { token, side });
  }

  async draw() {
    const weights = await this.page.weights(this.page.state.layer);
    const { heads, pairs } = this.page.state;
    const threshold = LIMITS[this.limit];
    const { focus } = this;
    const found = findLines(weights, this.page.tokens, { heads, pairs, threshold, focus });
    this.limitText.textContent = threshold === 0 ? "all" : formatShare(threshold);
    this.note.textContent = found.numLeft === 0 ? "" : `${formatCount(found.numLeft)} weaker lines,`
      + ` ${formatShare(found.shareLeft)} of the attention, aren't drawn.`;
    this.drawLines(found.lines);
    this.showShares(weights, focus);
  }

  drawLines(lines) {
    const { width } = this.canvas.parentElement.getBoundingClientRect();
    const height = this.rowHeight * this.page.tokens.length;
    const scale = Math.min(devicePixelRatio, MAX_CANVAS_PIXELS / height);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.setProperty("height", `${height}px`);
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    for (const { head, from, to, weight } of lines) {
      context.globalAlpha = 0.04 + 0.96 * weight;
      context.lineWidth = 1 + 2 * weight;
      context.strokeStyle = headColour(head);
      context.beginPath();
      context.moveTo(0, (from + 0.5) * this.rowHeight);
      context.lineTo(width, (to + 0.5) * this.rowHeight);
      context.stroke();
    }
    this.canvas.setAttribute("aria-label", `${formatCount(lines.length)} lines of attention`);
  }

  showShares(weights, focus) {
    const { state, tokens } = this.page;
    const shares = focus && findShares(weights, tokens, state, focus);
    for (const [side, buttons] of Object.entries(this.sides)) {
      buttons.forEach((button, index) => {
        const isFocus = focus?.token === index && focus.side === side;
        const share = focus && focus.side !== side ? shares[index] : null;
        const isKept = state.token === index && state.side === side;
        button.setAttribute("aria-pressed", String(isKept));
        button.classList.toggle("in-focus", isFocus);
        button.classList.toggle("dimmed", focus !== null && !isFocus && !(share?.mean >= 0.01));
        button.lastChild.textContent = share?.mean >= 0.01 ? formatShare(share.mean) : "";
        button.style.setProperty("--share", share?.mean ?? 0);
      });
    }
    this.details.replaceChildren(shareTable(this.page, focus, shares));
  }
}
