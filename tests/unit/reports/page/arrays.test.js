import assert from "node:assert/strict";
import test from "node:test";

import { decodeBase64, inflate, Vectors, Weights } from "./arrays.js";

test("what zlib packed is unpacked", async () => {
  const packed = decodeBase64("eJxjZGJmAQAAGAAL"); // zlib.compress(bytes([1, 2, 3, 4]))
  assert.deepEqual([...(await inflate(packed))], [1, 2, 3, 4]);
});

test("what isn't packed is refused", async () => {
  await assert.rejects(inflate(Uint8Array.of(1, 2, 3)));
});

test("a weight is the square of its byte's share", () => {
  const weights = new Weights(Uint8Array.of(0, 255, 51, 102, 1, 2, 3, 4), 2);
  assert.deepEqual([...weights.row(1, 0)], [0, 1]);
  assert.equal(weights.at(1, 1, 0).toFixed(6), "0.040000");
  assert.equal(weights.row(1, 1)[1].toFixed(6), "0.160000");
  assert.deepEqual([...weights.head(2)], [1, 2, 3, 4]);
  assert.equal(weights.at(2, 1, 1), Math.fround((4 / 255) ** 2));
});

/** The bytes of 0, 1, 2, …. */
function packSteps(size) {
  return new Uint8Array(Int16Array.from(size, (_, index) => index).buffer);
}

test("vectors are found by part, head and token", () => {
  const numHeads = 2;
  const length = 3;
  const features = 2;
  const bytes = packSteps({ length: 3 * numHeads * length * features });
  const scales = [[1, 2], [10, 20], [100, 200]];
  const vectors = new Vectors(bytes, scales, length);
  assert.equal(vectors.features, features);
  assert.deepEqual([...vectors.query(1, 0)], [0, 1]);
  assert.deepEqual([...vectors.query(2, 1)], [16, 18]);
  assert.deepEqual([...vectors.key(1, 2)], [160, 170]);
  assert.deepEqual([...vectors.value(2, 2)], [6800, 7000]);
});

test("those that look may be fewer or more than those that are looked at", () => {
  const weights = new Weights(Uint8Array.of(0, 51, 102, 153, 204, 255), 2, 3);
  assert.deepEqual([...weights.head(1)], [0, 51, 102, 153, 204, 255]);
  assert.equal(weights.row(1, 1).length, 3);
  assert.equal(weights.at(1, 1, 2), 1);
  const bytes = packSteps({ length: 2 * (2 + 3 + 3) });
  const vectors = new Vectors(bytes, [[1, 1], [1, 1], [1, 1]], 2, 3);
  assert.deepEqual([...vectors.query(2, 1)], [3]);
  assert.deepEqual([...vectors.key(1, 0)], [4]);
  assert.deepEqual([...vectors.key(2, 2)], [9]);
  assert.deepEqual([...vectors.value(2, 2)], [15]);
});

test("the numbers of vectors are signed and have two bytes", () => {
  const bytes = Uint8Array.of(1, 128, 255, 127, 255, 255, 0, 0, 1, 0, 2, 0);
  const vectors = new Vectors(bytes, [[1], [1], [1]], 1);
  assert.deepEqual([...vectors.query(1, 0)], [-32767, 32767]);
  assert.deepEqual([...vectors.key(1, 0)], [-1, 0]);
});
