import assert from "node:assert/strict";
import test from "node:test";

import {
  chooseTicks, findLimit, HeadNumbers, multiply, scoreOf, showNumber,
} from "./vector_numbers.js";

const QUERIES = [[1, -2, 0.5, 3], [0, 1, 0, -1]].map((row) => Float32Array.from(row));
const KEYS = [[2, 1, 4, -1], [-1, 3, 2, 0.5]].map((row) => Float32Array.from(row));

test("products are those of the numbers at the same place", () => {
  assert.deepEqual([...multiply(QUERIES[0], KEYS[0])], [2, -2, 2, -3]);
});

test("a score is the sum of the products over the root of their number", () => {
  assert.equal(scoreOf(QUERIES[0], KEYS[0]), -0.5);
});

test("products and scores of a head belong to the token that looks", () => {
  const parts = { query: QUERIES, key: KEYS, value: KEYS };
  const read = (part) => (head, token) => parts[part][token].map((number) => number * head);
  const vectors = Object.fromEntries(Object.keys(parts).map((part) => [part, read(part)]));
  const weights = { length: 2, width: 2, row: (head, token) => [head, token] };
  const numbers = new HeadNumbers(vectors, weights, 2, [2, 2]);
  assert.deepEqual([...numbers.products(1)[0]], [0, 4, 0, 4]);
  assert.deepEqual([...numbers.scores(1)], [4, 5]);
  assert.deepEqual(numbers.weightsOf(1), [2, 1]);
  assert.deepEqual([...numbers.values[1]], [-2, 6, 4, 1]);
});

test("left to right there are no numbers of tokens that stand behind", () => {
  const vectors = Object.fromEntries(
    ["query", "key", "value"].map((part) => [part, (head, token) => KEYS[token]]));
  const weights = { length: 2, width: 2, row: () => [] };
  const numbers = new HeadNumbers(vectors, weights, 1, [1, 2]);
  assert.equal(numbers.products(0)[1], null);
  assert.notEqual(numbers.products(1)[0], null);
  assert.ok(Number.isNaN(numbers.scores(0)[1]));
  assert.ok(!numbers.scores(1).some(Number.isNaN));
  assert.equal(findLimit([numbers.scores(0), null]), 11);
  assert.equal(showNumber(NaN), "–");
});

test("those that look may be fewer than those that are seen", () => {
  const read = () => (head, token) => Float32Array.of(token);
  const vectors = { query: read(), key: read(), value: read() };
  const numbers = new HeadNumbers(vectors, { length: 2, width: 3, row: () => [] }, 1, [3, 3]);
  assert.equal(numbers.queries.length, 2);
  assert.equal(numbers.keys.length, 3);
  assert.deepEqual([...numbers.scores(1)], [0, 1, 2]);
});

test("a few very large numbers don't make all others pale", () => {
  const row = Float32Array.from({ length: 200 }, (_, index) => (index % 2 ? 1 : -1));
  row[7] = -90;
  assert.equal(findLimit([row]), 1);
});

test("there is a limit for any numbers", () => {
  assert.equal(findLimit([new Float32Array(4)]), 1);
  assert.equal(findLimit([Float32Array.of(0, -3)]), 3);
  const row = new Float32Array(200);
  row[0] = 5;
  assert.equal(findLimit([row]), 5);
});

test("numbers of a ruler stand apart and end with the last column", () => {
  assert.deepEqual(chooseTicks(32, 4, 28), [0, 7, 15, 23, 31]);
  assert.deepEqual(chooseTicks(64, 2, 28), [0, 15, 31, 47, 63]);
  assert.deepEqual(chooseTicks(4, 12, 28), [0, 3]);
  assert.deepEqual(chooseTicks(3, 1, 28), [0]);
});

test("numbers have some three digits and a true minus", () => {
  assert.deepEqual(
    [-2.128, -0.001, 0, 12.34, -123.4].map(showNumber),
    ["−2.13", "0.00", "0.00", "12.3", "−123"],
  );
});
