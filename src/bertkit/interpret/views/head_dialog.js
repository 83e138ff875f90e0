import { element } from "./dom.js";
import { stepIndex } from "./keys.js";
import { formatShare } from "./numbers.js";
import { MARGIN, SQUARE, drawLabeled } from "./square.js";

const HINT = "Each row is a query token, each column a key token. Point at a square to read it; the"
  + " arrow keys go to the next heads.";

/** One head, enlarged: its attention as a square, what it does in words, the way to its lines. */
export class HeadDialog {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.title = element("h2", { id: "head-dialog-title", "aria-live": "polite" });
    this.square = element("canvas", {
      role: "img", class: "square", "aria-labelledby": "head-dialog-title",
      onpointermove: (event) => this.read(event),
      onpointerleave: () => this.hint(),
    });
    this.reading = element("p", { class: "quiet square-reading" });
    this.pattern = element("div");
    this.root = this.build();
    page.subscribe((_, changed) => changed.includes("theme") && this.root.open && this.draw());
  }

  build() {
    const button = (text, onclick) =>
      element("button", { type: "button", class: "chip", onclick }, text);
    const hasLines = this.page.views.includes("heads");
    const buttons = [
      hasLines ? button("See its lines", () => this.go()) : null,
      button("Close", () => this.root.close()),
    ];
    return element(
      "dialog",
      {
        class: "head-dialog", "aria-labelledby": "head-dialog-title",
        onkeydown: (event) => this.step(event),
        onclick: (event) => event.target === this.root && this.root.close(),
      },
      element(
        "div", { class: "head-dialog-body" },
        element("div", {}, this.square, this.reading),
        element("div", {}, this.title, this.pattern, element("p", { class: "chips" }, buttons)),
      ),
    );
  }

  /** Show a head, over everything else. */
  open(layer, head) {
    this.show(layer, head);
    this.root.showModal(); // which focuses the first button
  }

  show(layer, head) {
    Object.assign(this, { layer, head });
    this.title.textContent = `Head ${layer}.${head}`;
    this.pattern.replaceChildren(...describePattern(this.page, layer, head));
    this.hint();
    return this.draw();
  }

  async draw() {
    const { layer, head } = this;
    const weights = await this.page.weights(layer);
    if (layer === this.layer && head === this.head) {
      this.weights = weights;
      drawLabeled(this.square, weights.head(head), this.page.tokens, this.page.others);
    }
  }

  hint() {
    this.reading.textContent = HINT;
  }

  /** Say in words what is under the pointer. */
  read(event) {
    const { tokens, others } = this.page;
    const toToken = (offset, { length }) => {
      const place = (offset / this.square.clientWidth) * (MARGIN + SQUARE) - MARGIN;
      return Math.floor((place / SQUARE) * length);
    };
    const [from, to] = [toToken(event.offsetY, tokens), toToken(event.offsetX, others)];
    if (!(from in tokens && to in others)) {
      this.hint();
      return;
    }
    const share = formatShare(this.weights.at(this.head, from, to));
    this.reading.textContent =
      `${tokens[from].text} (${from + 1}) attends to ${others[to].text} (${to + 1}): ${share}`;
  }

  /** Go to a neighboring head. */
  step(event) {
    const { layers, heads } = this.page.model;
    const index = (this.layer - 1) * heads + this.head - 1;
    const next = stepIndex(event.key, index, layers * heads, heads);
    if (next !== null) {
      event.preventDefault();
      this.show(Math.floor(next / heads) + 1, (next % heads) + 1);
    }
  }

  go() {
    this.root.close();
    this.page.set({ layer: this.layer, heads: [this.head], head: this.head });
    this.page.show("heads");
  }
}

/** What a head does on this text, in words and numbers. */
function describePattern(page, layer, head) {
  const { name, shares, entropy } = page.patterns[layer - 1][head - 1];
  const isOff = page.without.includes(`${layer}.${head}`);
  const rows = Object.entries(shares)
    .sort((first, second) => second[1] - first[1])
    .map(([pattern, share]) =>
      element(
        "tr", {},
        element("th", { scope: "row" }, pattern),
        element("td", { class: "number" }, formatShare(share)),
      ),
    );
  return [
    element("p", {}, "Here it is ", element("b", {}, `“${name}”`), isOff ? ", and off." : "."),
    element("p", { class: "quiet" }, "Of its attention goes to"),
    element("table", {}, element("tbody", {}, rows)),
    element("p", { class: "quiet" }, "On average, a token attends as widely as with uniform"
      + ` attention to ${Math.exp(entropy).toFixed(1)} tokens.`),
  ];
}
