/**
 * What each token attends to, averaged over some heads.
 *
 * @param {Weights[]} layers the weights of some layers.
 * @param {number[]} heads from 1.
 * @returns {Float32Array[]} a row for each query token, a share for each key token.
 */
export function meanRows(layers, heads) {
  const [{ length, width }] = layers;
  const rows = Array.from({ length }, () => new Float32Array(width));
  for (const weights of layers) {
    for (const head of heads) {
      rows.forEach((row, token) => weights.row(head, token).forEach((share, other) => {
        row[other] += share / (layers.length * heads.length);
      }));
    }
  }
  return rows;
}

/**
 * Rows without some of their columns, each shared out anew.
 *
 * @param {Float32Array[]} rows
 * @param {boolean[]} isKept for each column.
 * @returns {Float32Array[]} 0 where a column is left out, and all of what is left in the others; a
 *   row that has nothing left is all 0.
 */
export function shareAnew(rows, isKept) {
  return rows.map((row) => {
    const kept = row.map((share, column) => (isKept[column] ? share : 0));
    const sum = kept.reduce((total, share) => total + share, 0);
    return sum > 0 ? kept.map((share) => share / sum) : kept;
  });
}
