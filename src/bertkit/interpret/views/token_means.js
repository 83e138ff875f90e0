/**
 * The mean of what each token has, over layers and heads.
 *
 * @param {number[][][]} numbers [layer − 1][head − 1][token].
 * @param {number[]} layers from 1.
 * @param {number[]} heads from 1.
 * @returns {number[]} for each token.
 */
export function meanNumbers(numbers, layers, heads) {
  return meanRows(layers.flatMap((layer) => heads.map((head) => numbers[layer - 1][head - 1])));
}

/**
 * What a token attends to, on average.
 *
 * @param {Weights[]} layers the weights of some layers.
 * @param {number[]} heads from 1.
 * @param {number} token from 0.
 * @returns {number[]} a share for each token.
 */
export function meanGiven(layers, heads, token) {
  return meanRows(layers.flatMap((weights) => heads.map((head) => weights.row(head, token))));
}

/**
 * How much of its attention each token gives to one, on average.
 *
 * @param {Weights[]} layers the weights of some layers.
 * @param {number[]} heads from 1.
 * @param {number} token from 0, the one that is attended to.
 * @returns {number[]} a share for each token.
 */
export function meanReceived(layers, heads, token) {
  const others = Array.from({ length: layers[0].length }, (_, other) => other);
  return meanRows(layers.flatMap((weights) => heads.map((head) => (
    others.map((other) => weights.at(head, other, token))))));
}

/**
 * The largest shares.
 *
 * @param {number[]} shares for each token.
 * @param {number} count how many to give at most.
 * @returns {Array<{token: number, share: number}>} the largest first.
 */
export function findLargest(shares, count) {
  const all = shares.map((share, token) => ({ token, share }));
  return all.sort((first, second) => second.share - first.share).slice(0, count);
}

function meanRows(rows) {
  const sums = Array.from(rows[0], () => 0);
  for (const row of rows) {
    row.forEach((number, token) => {
      sums[token] += number;
    });
  }
  return sums.map((sum) => sum / rows.length);
}
