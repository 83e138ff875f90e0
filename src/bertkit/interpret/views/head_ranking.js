// What the map of head importance says, without drawing it.

import { formatShare } from "./numbers.js";

/**
 * The largest size among the numbers of a map.
 *
 * @param {number[][]} rows layers × heads.
 * @returns {number}
 */
export function findLargest(rows) {
  return Math.max(...rows.flat().map(Math.abs));
}

/**
 * Heads in the order of how much they matter, those that change nothing left out.
 *
 * @param {number[][]} rows layers × heads.
 * @param {number} count of heads at most.
 * @returns {Array<{layer: number, head: number, value: number}>} layer and head from 1.
 */
export function rankHeads(rows, count) {
  const heads = rows.flatMap((row, layer) =>
    row.map((value, head) => ({ layer: layer + 1, head: head + 1, value })),
  );
  heads.sort((first, second) => Math.abs(second.value) - Math.abs(first.value));
  return heads.filter((head) => head.value !== 0).slice(0, count);
}

/**
 * The mean probability of what a judgment says.
 *
 * @param {{decisions: Array<{probability: number}>}} judgment
 * @returns {number}
 */
export function meanProbability({ decisions }) {
  return decisions.reduce((sum, { probability }) => sum + probability, 0) / decisions.length;
}

/**
 * What a number of the map means, in words.
 *
 * @param {Object} data of the view: {kind, says}.
 * @param {string} map "ablation" or "gradient".
 * @param {number} value
 * @returns {string}
 */
export function describeEffect({ kind, says }, map, value) {
  if (map === "gradient") {
    return kind === "number"
      ? `the number reacts by ${showSize(value)} to it`
      : `the loss reacts by ${showSize(value)} to it`;
  }
  if (kind === "vector") {
    return `without it the vector of the text changes by ${showSize(value)}`;
  }
  if (kind === "number") {
    return `without it the number changes by ${showSigned(value)}`;
  }
  const [judgment] = says.judgments;
  const whose = judgment.decisions.length > 1 ? "mean probability" : "probability";
  const before = meanProbability(judgment);
  const after = Math.max(0, before + value);
  const shares = `${formatShare(before)} to ${formatShare(after)}`;
  return `without it the ${whose} goes from ${shares} (${showSigned(value)})`;
}

/**
 * What is measured.
 *
 * @param {Object} data of the view: {kind, says}.
 * @returns {string} some sentences.
 */
export function describeMeasure({ kind, says }) {
  if (kind === "vector") {
    return "This model has no prediction for the text. Each number measures the mean vector of all"
      + " tokens.";
  }
  if (kind === "number") {
    return `Each number measures the predicted number: ${says.number}.`;
  }
  const [{ question, decisions }] = says.judgments;
  const [{ said, probability }] = decisions;
  return decisions.length === 1
    ? `Prediction: ${question}: “${said}”, with a probability of ${formatShare(probability)}.`
      + " Each number measures this probability."
    : `Prediction: ${question}. Each number measures the mean probability of the`
      + ` ${decisions.length} predictions.`;
}

/**
 * What the numbers of a map are.
 *
 * @param {string} kind "probability", "number" or "vector".
 * @param {string} map "ablation" or "gradient".
 * @returns {string} a caption.
 */
export function describeMap(kind, map) {
  if (map === "gradient") {
    const what = kind === "number" ? "the number" : "the loss (−log of the probability)";
    return `How strongly ${what} reacts when a head is turned down a little`;
  }
  return kind === "vector"
    ? "How far the vector turns when a head is switched off (cosine distance)"
    : `How the ${kind} changes when a head is switched off`;
}

/**
 * The decisions that two models make differently, those with the largest change first.
 *
 * @param {{decisions: Object[]}} before
 * @param {{decisions: Object[]}} after has in `kept` the probability of what was said before.
 * @returns {Array<{before: Object, after: Object, change: number}>}
 */
export function pairDecisions(before, after) {
  const pairs = before.decisions.map((decision, index) => {
    const later = after.decisions[index];
    return { before: decision, after: later, change: later.kept - decision.probability };
  });
  return pairs.sort((first, second) => Math.abs(second.change) - Math.abs(first.change));
}

/**
 * A number with its sign and two digits that count.
 *
 * @param {number} value
 * @returns {string} such as "−0.21", "+0.0034" or "0".
 */
export function showSigned(value) {
  const sign = value < 0 ? "−" : "+";
  return value === 0 ? "0" : `${sign}${showSize(value)}`;
}

/**
 * How large a number is, with two digits that count.
 *
 * @param {number} value
 * @returns {string} such as "0.21", "0.0034" or "2.1e-7".
 */
export function showSize(value) {
  const size = Math.abs(value);
  return size >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(2)));
}
