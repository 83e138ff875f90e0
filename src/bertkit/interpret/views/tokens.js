import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { formatShare } from "./numbers.js";
import { PatternGrid } from "./pattern_grid.js";
import { findLargest, meanGiven, meanNumbers, meanReceived } from "./token_means.js";

const NUM_LARGEST = 5;

/** The attention that each token receives and gives, and the pattern of each head. */
export const view = {
  name: "tokens",
  controls: ["layer", "heads"],
  mount(root, page) {
    const tokens = new TokenView(root, page);
    page.subscribe(() => tokens.draw());
    return tokens.draw();
  },
};

class TokenView {
  constructor(root, page) {
    this.page = page;
    this.visited = null; // the token under the pointer or in focus, shown before the kept one
    this.isWhole = false;
    this.turn = 0;
    this.scope = choiceChips(
      "Mean over the chosen heads of",
      [{ value: false, text: "this layer" }, { value: true, text: "all layers" }],
      (isWhole) => this.choose(isWhole),
    );
    this.chips = page.tokens.map((token, index) => this.buildChip(token, index));
    this.details = element("div", { class: "details", "aria-live": "polite" });
    this.grid = new PatternGrid(page, (layer, head) => this.open(layer, head));
    root.append(
      element("h2", {}, "Attention received"),
      this.scope.root,
      this.buildPassage(),
      this.details,
      element("h2", {}, "What each head does"),
      this.grid.root,
    );
  }

  buildChip({ text }, index) {
    const chip = {
      text: element("span", { class: "text", dir: "auto" }, text),
      number: element("span", { class: "received" }),
    };
    const events = {
      onclick: () => this.keep(index),
      onpointerenter: (event) => event.pointerType !== "touch" && this.visit(index),
      onfocus: (event) => event.target.matches(":focus-visible") && this.visit(index),
      onblur: () => this.visit(null),
    };
    chip.button = element("button", { type: "button", ...events }, chip.text, chip.number);
    return chip;
  }

  buildPassage() {
    const buttons = this.chips.map((chip) => chip.button);
    const passage = element(
      "div",
      {
        class: "passage-tokens", role: "group", "aria-label": "tokens",
        onpointerleave: () => this.visit(null),
        onkeydown: (event) => event.key === "Escape" && this.release(),
      },
      buttons,
    );
    rove(passage, buttons);
    return passage;
  }

  choose(isWhole) {
    this.isWhole = isWhole;
    return this.draw();
  }

  keep(token) {
    this.page.set({ token: token === this.page.state.token ? null : token, side: "from" });
  }

  release() {
    this.visit(null);
    this.page.set({ token: null });
  }

  visit(token) {
    if (token !== this.visited) {
      this.visited = token;
      this.draw();
    }
  }

  open(layer, head) {
    this.page.set({ layer, head, heads: [head] });
    if (this.page.views.includes("heads")) {
      this.page.show("heads");
    }
  }

  /** The numbers of the chosen heads, in the layer or in all. */
  async draw() {
    this.turn += 1;
    const { turn, page: { state, model } } = this;
    const layers = this.isWhole ? count(model.layers) : [state.layer];
    this.scope.show(this.isWhole);
    this.drawPassage(layers, state);
    const token = this.visited ?? state.token;
    this.grid.draw(token);
    if (token === null) {
      this.details.replaceChildren(element("p", { class: "quiet" },
        "Choose a token to see what it attends to, and what attends to it."));
      return;
    }
    const weights = await Promise.all(layers.map((layer) => this.page.weights(layer)));
    if (turn === this.turn) {
      this.details.replaceChildren(...this.describe(token, layers, weights));
    }
  }

  drawPassage(layers, { heads, token: kept }) {
    const { data, tokens } = this.page;
    const received = meanNumbers(data.received, layers, heads);
    const words = received.filter((_, index) => !tokens[index].special);
    const [least, most] = [Math.min(...words), Math.max(...words)];
    this.chips.forEach(({ button, number }, index) => {
      const share = most > least ? (received[index] - least) / (most - least) : 0;
      number.textContent = received[index].toFixed(1);
      button.style.setProperty("--share", Math.max(0, Math.min(1, share)).toFixed(3));
      button.setAttribute("aria-pressed", String(index === kept));
    });
  }

  describe(token, layers, weights) {
    const { page, page: { data, state: { heads } } } = this;
    const name = element("b", { dir: "auto" }, page.tokens[token].text);
    const received = meanNumbers(data.received, layers, heads)[token];
    const entropy = meanNumbers(data.entropy, layers, heads)[token];
    const isMasked = page.numAllowed[0] < page.tokens.length;
    const seen = `${page.numAllowed[token]} ${isMasked ? "that it sees" : "tokens"}`;
    return [
      element("p", {}, name, ` (token ${token + 1}) receives ${received.toFixed(2)}; uniform`
        + ` attention would give 1. Its entropy is ${entropy.toFixed(2)}: that of uniform attention`
        + ` to ${Math.exp(entropy).toFixed(1)} of the ${seen}.`),
      element("div", { class: "lists" },
        this.list("It attends most to", meanGiven(weights, heads, token)),
        this.list("Tokens that attend most to it", meanReceived(weights, heads, token))),
    ];
  }

  list(title, shares) {
    const rows = findLargest(shares, NUM_LARGEST).map(({ token, share }) => element(
      "tr", {},
      element("td", { dir: "auto" }, this.page.tokens[token].text, " ",
        element("span", { class: "quiet" }, token + 1)),
      element("td", { class: "number" }, formatShare(share)),
      element("td", {}, element("div", { class: "bar", style: { width: `${8 * share}rem` } })),
    ));
    return element("table", {}, element("caption", {}, title), element("tbody", {}, rows));
  }
}

function count(number) {
  return Array.from({ length: number }, (_, index) => index + 1);
}
