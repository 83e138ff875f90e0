import assert from "node:assert/strict";
import test from "node:test";

import { meanRows, shareAnew } from "./alignment_means.js";
import { Weights } from "./arrays.js";

const rounded = (rows) => rows.map((row) => [...row].map((share) => Number(share.toFixed(4))));

test("the mean is over the chosen heads of the chosen layers", () => {
  const first = new Weights(Uint8Array.of(255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 255), 2, 3);
  const second = new Weights(Uint8Array.of(0, 255, 0, 0, 255, 0, 9, 9, 9, 9, 9, 9), 2, 3);
  assert.deepEqual(rounded(meanRows([first, second], [1])), [[0.5, 0.5, 0], [0, 1, 0]]);
  assert.deepEqual(rounded(meanRows([first], [1, 2])), [[0.5, 0, 0.5], [0, 0.5, 0.5]]);
});

test("what is left out is shared out anew", () => {
  const rows = [Float32Array.of(0.5, 0.2, 0.3), Float32Array.of(1, 0, 0)];
  assert.deepEqual(rounded(shareAnew(rows, [false, true, true])), [[0, 0.4, 0.6], [0, 0, 0]]);
});
