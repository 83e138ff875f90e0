import assert from "node:assert/strict";
import test from "node:test";

import { shrink } from "./thumbnails.js";

test("a small square stays as it is", () => {
  const bytes = Uint8Array.of(1, 2, 3, 4);
  assert.equal(shrink(bytes, 2), bytes);
});

test("a point stands for the largest of those that it covers", () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, index) => index);
  assert.deepEqual([...shrink(bytes, 2)], [5, 7, 13, 15]);
});

test("no weight gets lost where sides don't fit", () => {
  const bytes = new Uint8Array(25);
  bytes[24] = 9;
  bytes[12] = 7;
  assert.deepEqual([...shrink(bytes, 2)], [7, 0, 0, 9]);
});
