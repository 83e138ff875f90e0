import { headColor } from "./color.js";
import { element } from "./dom.js";
import { AttentionLines, NumberBars, SeenTokens, TokenButtons } from "./neuron_columns.js";
import { NumberBlock, ROW_PIXELS } from "./number_block.js";
import { formatShare } from "./numbers.js";
import { findLimit, showNumber } from "./vector_numbers.js";

const OTHER_PIXELS = 440; // what the columns that aren't blocks take, about
const NUM_BLOCKS = 3; // beside them: query, key and their product
const MIN_COLUMN_PIXELS = 2;
const MAX_FEATURE_PIXELS = 12;

/** Tokens and their numbers side by side: those of all pairs, or those of one query token. */
export class NeuronTable {
  /**
   * @param {Page} page
   * @param {number} width in pixels, that the table may take.
   * @param {function(number)} press gets the token that is clicked on the left.
   */
  constructor({ tokens, others, model }, width, press) {
    const numFeatures = model.features;
    const room = Math.max(0, width - OTHER_PIXELS);
    const feature = columnPixels(room / NUM_BLOCKS / numFeatures, MAX_FEATURE_PIXELS);
    const block = (name, rows) => new NumberBlock(name, rows.length, numFeatures, feature);
    this.tokens = new TokenButtons(tokens, press);
    this.query = block("queries", tokens);
    this.pairs = buildPairs(tokens, others, columnPixels(room / others.length, ROW_PIXELS));
    this.lines = new AttentionLines(Math.max(tokens.length, others.length));
    this.seen = new SeenTokens(others);
    this.key = block("keys", others);
    this.product = block("products of query and keys", others);
    this.scores = new NumberBars(others.length, showNumber);
    this.weights = new NumberBars(others.length, formatShare);
    this.value = block("values", others);
    this.blocks = [this.query, this.pairs, this.key, this.product, this.value];
    this.build(`q · k / √${numFeatures}`);
  }

  build(score) {
    const always = [
      column("token", "query", this.tokens),
      column("query q", "what it looks for", this.query),
    ];
    this.overview = [column(score, "score: a column for each key token", this.pairs)];
    this.values = column("value v", "what it gives", this.value);
    this.values.classList.add("left-out");
    this.details = [
      column("", "", this.lines),
      column("token", "key", this.seen),
      column("key k", "what it is found by", this.key),
      column("q × k", "number by number", this.product),
      column(score, "score", this.scores),
      column("softmax", "attention", this.weights),
      this.values,
    ];
    this.root = element("div", { class: "neuron-table" }, always, this.overview, this.details);
    this.root.style.setProperty("--row", `${ROW_PIXELS}px`);
    this.open(this.overview, this.details);
  }

  /**
   * Draw what doesn't depend on the query token.
   *
   * @param {HeadNumbers} numbers
   */
  paint(numbers) {
    const scores = numbers.queries.map((_, token) => numbers.scores(token));
    this.pairs.paint(scores, findLimit(scores));
    this.key.paint(numbers.keys, findLimit(numbers.keys));
    this.value.paint(numbers.values, findLimit(numbers.values));
  }

  /**
   * Show the scores of all pairs.
   *
   * @param {HeadNumbers} numbers
   */
  showAll(numbers) {
    this.open(this.overview, this.details);
    this.query.paint(numbers.queries, findLimit(numbers.queries));
  }

  /**
   * Show how the attention of one token is made.
   *
   * @param {HeadNumbers} numbers
   * @param {number} token from 0, the one that looks.
   * @param {number} head from 1; its lines have its color.
   */
  showToken(numbers, token, head) {
    this.open(this.details, this.overview);
    const [products, scores] = [numbers.products(token), numbers.scores(token)];
    const weights = numbers.weightsOf(token);
    const own = numbers.queries.map((query, index) => (index === token ? query : null));
    this.query.paint(own, findLimit(numbers.queries));
    this.product.paint(products, findLimit(products));
    this.lines.update(token, weights, headColor(head));
    this.seen.update(scores, weights);
    this.scores.update(scores);
    this.weights.update(weights);
  }

  /**
   * Point at a number, and at those that belong to it.
   *
   * @param {{block: NumberBlock, row: number, column: number}|null} cursor
   * @param {number|null} token from 0, the one that looks.
   */
  mark(cursor, token) {
    for (const block of this.blocks) {
      const isMarked = cursor !== null && (cursor.block === block || cursor.block !== this.pairs);
      const row = block === this.query ? token : cursor?.row;
      block.mark(isMarked ? row : null, isMarked ? cursor.column : null);
    }
    this.seen.mark(cursor?.row ?? null);
  }

  open(shown, hidden) {
    shown.forEach((part) => { part.hidden = false; });
    hidden.forEach((part) => { part.hidden = true; });
  }
}

function column(title, note, part) {
  const about = [element("b", {}, title), element("small", {}, note)];
  const head = element("div", { class: "neuron-head" }, about, part.scale ?? null,
    part.ruler ?? null);
  return element("div", { class: "neuron-part" }, head, part.body);
}

function buildPairs(tokens, others, columnWidth) {
  const names = others.map((token) => token.text);
  return new NumberBlock("scores of all pairs", tokens.length, names.length, columnWidth, names);
}

function columnPixels(room, most) {
  return Math.max(MIN_COLUMN_PIXELS, Math.min(most, Math.floor(room)));
}
