const BEYOND = 0.01; // the share of the numbers that may be larger than the strongest color says

/**
 * The products of the numbers at the same place.
 *
 * @param {Float32Array} query
 * @param {Float32Array} key as long as the query.
 * @returns {Float32Array}
 */
export function multiply(query, key) {
  return query.map((number, feature) => number * key[feature]);
}

/**
 * How well a key fits a query: the sum of the products over the square root of their number.
 *
 * @param {Float32Array} query
 * @param {Float32Array} key as long as the query.
 * @returns {number}
 */
export function scoreOf(query, key) {
  let sum = 0;
  for (let feature = 0; feature < query.length; feature += 1) {
    sum += query[feature] * key[feature];
  }
  return sum / Math.sqrt(query.length);
}

/** Queries, keys, values and attention of one head. */
export class HeadNumbers {
  /**
   * @param {Vectors} vectors of its layer.
   * @param {Weights} weights of its layer.
   * @param {number} head from 1.
   * @param {number[]} numAllowed how many tokens, from the first, each token may attend to.
   */
  constructor(vectors, weights, head, numAllowed) {
    const read = (part, length) =>
      Array.from({ length }, (_, token) => vectors[part](head, token));
    this.queries = read("query", weights.length);
    this.keys = read("key", weights.width);
    this.values = read("value", weights.width);
    this.weightsOf = (token) => weights.row(head, token);
    this.isSeen = (token, other) => other < numAllowed[token];
  }

  /**
   * For each key, its products with the query of a token; null where it isn't seen.
   *
   * @param {number} token from 0, the one that looks.
   * @returns {Array<Float32Array|null>}
   */
  products(token) {
    return this.keys.map((key, other) =>
      (this.isSeen(token, other) ? multiply(this.queries[token], key) : null));
  }

  /**
   * For each key, how well it fits the query of a token; NaN where it isn't seen.
   *
   * @param {number} token from 0, the one that looks.
   * @returns {Float32Array}
   */
  scores(token) {
    return Float32Array.from(this.keys, (key, other) =>
      (this.isSeen(token, other) ? scoreOf(this.queries[token], key) : NaN));
  }
}

/**
 * The size that gets the strongest color: nearly all numbers are smaller. A few numbers of a BERT
 * are many times as large as all others, which would be pale beside them.
 *
 * @param {Array<Float32Array|null>} rows null for one that isn't seen, as NaN is for a number.
 * @returns {number} above 0.
 */
export function findLimit(rows) {
  const sizes = Float32Array.from(rows.flatMap((row) => (row === null ? [] : [...row])))
    .filter((value) => !Number.isNaN(value)).map(Math.abs).sort();
  const place = Math.ceil((1 - BEYOND) * sizes.length) - 1;
  return sizes[place] || sizes.at(-1) || 1;
}

/**
 * The columns that are numbered in a ruler: the first, and then every fourth, eighth, ….
 *
 * @param {number} numColumns
 * @param {number} columnWidth in pixels.
 * @param {number} labelWidth in pixels.
 * @returns {number[]} from 0.
 */
export function chooseTicks(numColumns, columnWidth, labelWidth) {
  const step = [4, 8, 16, 32, 64].find((count) => count * columnWidth >= labelWidth) ?? 128;
  const ticks = [0];
  for (let column = step; column <= numColumns; column += step) {
    ticks.push(column - 1);
  }
  return ticks;
}

/**
 * A number for people: some three digits, with a true minus sign; "–" for NaN.
 *
 * @param {number} value
 * @returns {string}
 */
export function showNumber(value) {
  if (Number.isNaN(value)) {
    return "–";
  }
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const text = size.toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
