import { element } from "./dom.js";
import { stepIndex } from "./keys.js";
import { NeuronTable } from "./neuron_table.js";
import { formatShare } from "./numbers.js";
import { scrollBox } from "./scroll.js";
import { HeadNumbers, showNumber } from "./vector_numbers.js";

const OTHER_NUMBERS = ["layer", "head", "theme"];
const ADVICE = {
  all: "Choose a token on the left to see how its attention is made.",
  token: "Point at a column, or tap it, to read its numbers. Escape, or the token again, leads back"
    + " to all tokens.",
};

/** How the query of a token and the keys of all tokens make the attention of a head. */
export const view = {
  name: "neurons",
  controls: ["layer", "head"],
  async mount(root, page) {
    if ((await page.vectors(page.state.layer)) === null) {
      root.append(explainAbsence(Math.max(page.tokens.length, page.others.length)));
      return;
    }
    const neurons = new NeuronView(root, page);
    page.subscribe((_, changed) => neurons.follow(changed));
    await neurons.read();
  },
};

function explainAbsence(numTokens) {
  return element(
    "p",
    {},
    `This page has no queries and keys: the text has ${numTokens} tokens, and those of long texts`
    + " are left out to keep the file small. Make the page again with ",
    element("code", {}, "--views neurons"),
    " to see them.",
  );
}

class NeuronView {
  constructor(root, page) {
    this.page = page;
    this.visited = null; // the token under the pointer or in focus, shown before the kept one
    this.cursor = null; // the number that is read out: {block, row, column}
    this.numbers = null; // of the head that is shown, once they are unpacked
    this.table = new NeuronTable(page, root.clientWidth, (token) => this.press(token));
    this.advice = element("p", { class: "quiet" });
    this.said = element("p", { class: "said", role: "status" });
    const scroll = scrollBox(this.table.root);
    const options = element("div", { class: "neuron-options" }, this.buildSwitch(), this.advice);
    root.append(options, this.said, scroll);
    this.listen();
  }

  buildSwitch() {
    const box = element("input", {
      type: "checkbox",
      onchange: () => this.table.values.classList.toggle("left-out", !box.checked),
    });
    return element("label", { class: "quiet" }, box, " show the values v, too");
  }

  listen() {
    const { root, tokens, pairs, product } = this.table;
    root.addEventListener("pointermove", (event) => this.point(event));
    root.addEventListener("pointerdown", (event) => this.point(event));
    root.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.visit(null); // a finger that is lifted leaves, too
    });
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.release());
    root.addEventListener("focusout", ({ relatedTarget: next }) => {
      if (next !== null && !root.contains(next)) this.visit(null); // null is a click on nothing
    });
    tokens.body.addEventListener("focusin", ({ target }) => {
      if (target.matches(":focus-visible")) this.visit(tokens.buttons.indexOf(target));
    });
    pairs.body.addEventListener("click", (event) => this.press(pairs.locate(event).row));
    pairs.body.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.cursor !== null) {
        event.preventDefault(); // or the token, which has the focus then, is pressed, too
        this.press(this.cursor.row);
      }
    });
    for (const block of [pairs, product]) {
      block.takeKeys((event) => this.step(block, event));
    }
  }

  /** The token whose attention is shown; null for the overview. */
  get token() {
    return this.visited ?? this.kept;
  }

  /** The token that is kept; null also of one that is only looked at, in cross-attention. */
  get kept() {
    const { others, tokens, state: { token, side } } = this.page;
    return side === "from" || others === tokens ? token : null;
  }

  follow(changed) {
    if (changed.includes("token") || changed.includes("side")) {
      this.cursor = null; // its block may not be shown now
    }
    return changed.some((name) => OTHER_NUMBERS.includes(name)) ? this.read() : this.draw();
  }

  async read() {
    const { layer, head } = this.page.state;
    const parts = await Promise.all([this.page.vectors(layer), this.page.weights(layer)]);
    if (layer === this.page.state.layer && head === this.page.state.head) {
      this.numbers = new HeadNumbers(...parts, head, this.page.numAllowed);
      this.table.paint(this.numbers);
      this.draw();
    }
  }

  draw() {
    if (this.numbers === null) return;
    const { layer, head } = this.page.state;
    const isOff = this.page.without.includes(`${layer}.${head}`);
    const off = isOff ? "This head is switched off: what it gathers isn't used. " : "";
    this.advice.textContent = off + ADVICE[this.token === null ? "all" : "token"];
    this.table.tokens.keep(this.kept);
    if (this.token === null) {
      this.table.showAll(this.numbers);
    } else {
      this.table.showToken(this.numbers, this.token, head);
    }
    this.say();
  }

  press(token) {
    this.page.set({ token: token === this.kept ? null : token, side: "from" });
    this.table.tokens.buttons[token].focus(); // the block that had the focus may be hidden now
    this.visit(null);
  }

  release() {
    const { token } = this;
    this.page.set({ token: null });
    if (token !== null) this.table.tokens.buttons[token].focus();
    this.visit(null);
  }

  visit(token) {
    this.cursor = null;
    if (token === this.visited) {
      this.say();
    } else {
      this.visited = token;
      this.draw();
    }
  }

  point(event) {
    const { tokens, query, blocks } = this.table;
    const button = tokens.buttons.indexOf(event.target);
    if (button >= 0 && event.pointerType !== "touch") this.visit(button);
    const block = blocks.find(({ body }) => body.contains(event.target));
    this.cursor = block === undefined ? null : { block, ...block.locate(event) };
    if (block === query) this.cursor.row = this.token ?? this.cursor.row;
    this.say();
  }

  step(block, event) {
    const { row, column } = this.cursor?.block === block ? this.cursor : { row: 0, column: 0 };
    const { numRows, numColumns } = block;
    const index = row * numColumns + column;
    const next = stepIndex(event.key, index, numRows * numColumns, numColumns);
    if (next !== null) {
      event.preventDefault();
      this.cursor = { block, row: Math.floor(next / numColumns), column: next % numColumns };
      this.say();
    }
  }

  say() {
    if (this.numbers === null) return;
    this.table.mark(this.cursor, this.token);
    this.said.textContent = this.cursor === null ? "" : this.describe(this.cursor);
  }

  describe({ block, row, column }) {
    const { query, pairs, value } = this.table;
    const { queries, keys, values } = this.numbers;
    const name = (token) => `“${this.page.tokens[token].text}”`;
    const other = (token) => `“${this.page.others[token].text}”`;
    const feature = `number ${column + 1} of ${queries[0].length}`;
    if (block === query) {
      return `${feature} in the query of ${name(row)}: ${showNumber(queries[row][column])}`;
    }
    if (block === value) {
      return `${feature} in the value of ${other(row)}: ${showNumber(values[row][column])}`;
    }
    const [from, to] = block === pairs ? [row, column] : [this.token, row];
    if (!this.numbers.isSeen(from, to)) {
      return `${name(from)} doesn't see ${other(to)}, which comes after it`;
    }
    if (block === pairs) {
      const score = showNumber(this.numbers.scores(from)[to]);
      const share = formatShare(this.numbers.weightsOf(from)[to]);
      return `${name(from)} attends to ${other(to)}: score ${score}, attention ${share}`;
    }
    const [q, k] = [queries[from][column], keys[to][column]];
    return `${name(from)} attends to ${other(to)}, ${feature}: q × k = ${showNumber(q)}`
      + ` × ${showNumber(k)} = ${showNumber(q * k)}`;
  }
}
