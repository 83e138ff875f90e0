import assert from "node:assert/strict";
import test from "node:test";

import { Weights } from "./arrays.js";
import { findLargest, meanGiven, meanNumbers, meanReceived } from "./token_means.js";

const HALF = Math.sqrt(0.5) * 255; // the byte of a weight of nearly a half
const FIRST = new Weights(Uint8Array.of(255, 0, HALF, HALF, 0, 255, 255, 0), 2);
const SECOND = new Weights(Uint8Array.of(0, 255, 0, 255, 255, 0, 255, 0), 2);

function close(found, expected) {
  assert.deepEqual(found.map((number) => Number(number.toFixed(2))), expected);
}

test("numbers are averaged over the chosen layers and heads", () => {
  const numbers = [[[1, 2], [3, 4]], [[5, 6], [70, 80]]];
  assert.deepEqual(meanNumbers(numbers, [1], [1, 2]), [2, 3]);
  assert.deepEqual(meanNumbers(numbers, [1, 2], [1]), [3, 4]);
  assert.deepEqual(meanNumbers(numbers, [2], [2]), [70, 80]);
});

test("what a token gives is a row, what it receives a column", () => {
  close(meanGiven([FIRST], [1], 1), [0.5, 0.5]);
  close(meanReceived([FIRST], [1], 0), [1, 0.5]);
  close(meanGiven([FIRST], [1, 2], 1), [0.75, 0.25]);
  close(meanGiven([FIRST, SECOND], [1], 1), [0.25, 0.75]);
  close(meanReceived([FIRST, SECOND], [1, 2], 1), [0.5, 0.37]);
});

test("the largest come first, and of equal ones the earlier", () => {
  const found = findLargest([0.1, 0.4, 0.1, 0.4], 3);
  assert.deepEqual(found.map(({ token }) => token), [1, 3, 0]);
  assert.equal(findLargest([0.5, 0.5], 5).length, 2);
});
