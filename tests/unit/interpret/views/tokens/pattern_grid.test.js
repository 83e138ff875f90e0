import assert from "node:assert/strict";
import test from "node:test";

import { describeEntropy, describePattern, findMostEntropy } from "./pattern_grid.js";

const NEXT = { name: "next", shares: { next: 0.625, previous: 0.1 } };
const BROAD = { name: "broad", shares: { next: 0.125, previous: 0.1 } };
const MIXED = { ...BROAD, name: "mixed" };
const ALL = "all patterns";

test("without a filter each head has its own pattern, with its share where it has one", () => {
  const next = { hue: "c0", shade: 0.625, lines: ["next", "63 %"] };
  assert.deepEqual(describePattern(NEXT, ALL), next);
  const broad = { hue: "quiet", shade: 0.4, lines: ["broad"] };
  assert.deepEqual(describePattern(BROAD, ALL), broad);
  assert.equal(describePattern(MIXED, ALL).shade, 0);
});

test("a filter by a place shows the share of every head", () => {
  const previous = { hue: "c2", shade: 0.1, lines: ["10 %", "next"] };
  assert.deepEqual(describePattern(NEXT, "previous"), previous);
  assert.deepEqual(describePattern(BROAD, "next").lines, ["13 %", "broad"]);
});

test("a filter without a place marks the heads that have its name", () => {
  assert.equal(describePattern(BROAD, "broad").shade, 0.4);
  assert.equal(describePattern(MIXED, "mixed").shade, 0.4);
  assert.equal(describePattern(MIXED, "broad").shade, 0);
  assert.deepEqual(describePattern(NEXT, "broad"), { hue: "c0", shade: 0, lines: ["next", "63 %"] });
});

test("an entropy is also a number of tokens, and the most is that of all", () => {
  const all = { hue: "c0", shade: 1, lines: ["1.61", "as 5.0"] };
  assert.deepEqual(describeEntropy(Math.log(5), Math.log(5)), all);
  assert.equal(describeEntropy(0, Math.log(5)).shade, 0);
  assert.equal(describeEntropy(0, 0).shade, 0);
});

test("what can be looked at alike is all, or left to right what is seen", () => {
  assert.equal(findMostEntropy({ numAllowed: [3, 3, 3] }, 1), Math.log(3));
  assert.equal(findMostEntropy({ numAllowed: [1, 2, 3] }, 1), Math.log(2));
  const mean = (Math.log(2) + Math.log(3)) / 3;
  assert.ok(Math.abs(findMostEntropy({ numAllowed: [1, 2, 3] }, null) - mean) < 1e-12);
});
