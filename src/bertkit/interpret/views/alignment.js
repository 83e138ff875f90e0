import { NamedGrid, PlainGrid } from "./alignment_grid.js";
import { meanRows, shareAnew } from "./alignment_means.js";
import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { formatShare } from "./numbers.js";

const MAX_NAMED_CELLS = 4000;
const ADVICE = "Point at a square to read it.";

/** Target tokens over source tokens: a row for each step, a column for each token. */
export const view = {
  name: "alignment",
  controls: ["layer", "heads"],
  mount(root, page) {
    const alignment = new Alignment(page);
    root.append(...alignment.build());
    page.subscribe((_, changed) => alignment.follow(changed));
    return alignment.draw();
  },
};

class Alignment {
  constructor(page) {
    this.page = page;
    this.choice = { isWhole: page.startsWhole, isChosen: true, isAll: true };
    this.turn = 0;
    this.rows = [];
    this.chips = this.buildChips();
    this.reading = element("p", { class: "alignment-reading", role: "status" }, ADVICE);
    const columns = page.others.map(({ text }) => text);
    const isNamed = columns.length * page.tokens.length <= MAX_NAMED_CELLS;
    const Grid = isNamed ? NamedGrid : PlainGrid;
    const read = (row, column) => this.read(row, column);
    this.grid = new Grid(columns, page.tokens.length, read, (row) => this.keep(row));
  }

  buildChips() {
    const make = (name, label, texts) => {
      const options = texts.map((text, index) => ({ value: index === 0, text }));
      const chips = choiceChips(label, options, (value) => {
        this.choice[name] = value;
        this.draw();
      });
      return { ...chips, name };
    };
    return [
      make("isWhole", "Mean of", ["all heads of all layers", "the chosen heads"]),
      make("isChosen", "Rows are named by the", ["next word", "last word"]),
      make("isAll", "[CLS] and [SEP]", ["shown", "left out"]),
    ];
  }

  build() {
    const chips = element("div", { class: "alignment-chips options" }, this.chips.map(({ root }) => root));
    const axes = element("p", { class: "quiet" }, "Rows: target tokens. Columns: source"
      + " tokens. Numbers are percentages of a row.");
    return [chips, axes, this.reading, this.grid.root];
  }

  /** A reader who chooses a layer or head wants to see it. */
  follow(changed) {
    if (changed.includes("layer") || changed.includes("heads")) {
      this.choice.isWhole = false;
    }
    return this.draw();
  }

  keep(row) {
    const token = row === this.page.state.token ? null : row;
    this.page.set({ token, side: "from" });
  }

  async draw() {
    this.turn += 1;
    const { turn, choice, page: { state, model, others } } = this;
    this.chips.forEach(({ name, show }) => show(choice[name]));
    const layers = choice.isWhole ? count(model.layers) : [state.layer];
    const weights = await Promise.all(layers.map((layer) => this.page.weights(layer)));
    if (turn !== this.turn) {
      return;
    }
    const rows = meanRows(weights, choice.isWhole ? count(model.heads) : state.heads);
    this.rows = choice.isAll ? rows : shareAnew(rows, others.map(({ special }) => !special));
    this.grid.draw(this.rows, this.names, state.side === "from" ? state.token : null);
  }

  /** The names of the rows: what is chosen in each, or what was written before. */
  get names() {
    return this.choice.isChosen ? this.page.data.chosen : this.page.tokens.map(({ text }) => text);
  }

  read(row, column) {
    if (row === null) {
      this.reading.textContent = ADVICE;
      return;
    }
    const { page, rows } = this;
    const [last, next] = [page.tokens[row].text, page.data.chosen[row]];
    this.reading.textContent = `After “${last}”, predicting “${next}”, it attends to `
      + `“${page.others[column].text}” (${column + 1}): ${formatShare(rows[row][column])}`;
  }
}

function count(number) {
  return Array.from({ length: number }, (_, index) => index + 1);
}
