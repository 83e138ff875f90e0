import assert from "node:assert/strict";
import test from "node:test";

import { shrink } from "./thumbnails.js";

test("a small square stays as it is", () => {
  const bytes = Uint8Array.of(1, 2, 3, 4);
  assert.deepEqual(shrink(bytes, 2, 2), [bytes, 2]);
});

test("a point stands for the largest of those that it covers", () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, index) => index);
  assert.deepEqual([...shrink(bytes, 4, 2)[0]], [5, 7, 13, 15]);
});

test("no weight gets lost where sides don't fit", () => {
  const bytes = new Uint8Array(25);
  bytes[24] = 9;
  bytes[12] = 7;
  assert.deepEqual([...shrink(bytes, 5, 2)[0]], [7, 0, 0, 9]);
});

test("a grid that is long in one way only is made smaller in that way", () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  assert.deepEqual(shrink(bytes, 4, 2), [Uint8Array.of(2, 4, 6, 8), 2]);
  assert.deepEqual(shrink(bytes, 2, 2), [Uint8Array.of(3, 4, 7, 8), 2]);
});
