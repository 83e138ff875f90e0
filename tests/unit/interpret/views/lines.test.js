import assert from "node:assert/strict";
import test from "node:test";

import { Weights } from "./arrays.js";
import { findLines, findShares, MAX_LINES, MAX_LINES_BY_TOKENS } from "./lines.js";

const TOKENS = [{ segment: 0 }, { segment: 0 }, { segment: 1 }];
const PAGE = { tokens: TOKENS, others: TOKENS };
// two heads, in each three rows for the tokens that look
const WEIGHTS = new Weights(
  Uint8Array.of(255, 0, 0, 0, 128, 128, 51, 51, 102, 0, 255, 0, 0, 0, 255, 51, 0, 0), 3,
);
const ALL = { heads: [1, 2], pairs: "all", threshold: 0, focus: null };

function draw(changes) {
  const found = findLines(WEIGHTS, PAGE, { ...ALL, ...changes });
  return { ...found, lines: found.lines.map(({ head, from, to }) => `${head}:${from}→${to}`) };
}

test("every weight above zero is a line, the weakest first", () => {
  const { lines } = findLines(WEIGHTS, PAGE, ALL);
  assert.equal(lines.length, 9);
  const weights = lines.map((line) => line.weight);
  assert.deepEqual(weights, weights.toSorted((first, second) => first - second));
  assert.deepEqual(lines.at(-1), { head: 2, from: 1, to: 2, weight: 1 });
});

test("only chosen heads have lines", () => {
  assert.deepEqual(draw({ heads: [2] }).lines, ["2:2→0", "2:0→1", "2:1→2"]);
});

test("a token on the left shows where it looks, one on the right who looks at it", () => {
  const from = draw({ focus: { token: 2, side: "from" } }).lines;
  assert.deepEqual(from, ["1:2→0", "1:2→1", "2:2→0", "1:2→2"]);
  const to = draw({ focus: { token: 2, side: "to" } }).lines;
  assert.deepEqual(to, ["1:2→2", "1:1→2", "2:1→2"]);
});

test("pairs of texts leave lines out", () => {
  assert.deepEqual(draw({ pairs: "B→A" }).lines, ["1:2→0", "1:2→1", "2:2→0"]);
  assert.deepEqual(draw({ pairs: "B→B" }).lines, ["1:2→2"]);
});

test("what is under the limit is counted, and its share of the attention", () => {
  const { lines, numLeft, shareLeft } = draw({ heads: [2], threshold: 0.04 });
  assert.equal(lines.length, 3, "0.04 itself is drawn");
  assert.equal(numLeft, 0);
  const higher = draw({ heads: [2], threshold: 0.05 });
  assert.equal(higher.numLeft, 1);
  assert.equal(higher.shareLeft.toFixed(4), (0.04 / 2.04).toFixed(4));
  assert.equal(shareLeft, 0);
});

for (const [length, most] of [[50, MAX_LINES], [200, MAX_LINES_BY_TOKENS / 200]]) {
  test(`of ${length} tokens at most ${most} lines are drawn, and those are the strongest`, () => {
    const bytes = Uint8Array.from({ length: 9 * length * length }, (_, index) => 1 + (index % 255));
    const tokens = Array.from({ length }, () => ({ segment: 0 }));
    const choice = { heads: [1, 2, 3, 4, 5, 6, 7, 8, 9], pairs: "all", threshold: 0, focus: null };
    const { lines, numLeft } = findLines(new Weights(bytes, length), { tokens, others: tokens }, choice);
    assert.ok(lines.length <= most && lines.length > 0.7 * most, `${lines.length} lines`);
    assert.equal(lines.length + numLeft, bytes.length);
    assert.equal(lines.at(-1).weight, 1);
  });
}

test("shares are the mean of the heads, and tell the strongest", () => {
  const shares = findShares(WEIGHTS, PAGE, ALL, { token: 0, side: "from" });
  assert.deepEqual(shares.map(({ mean }) => mean), [0.5, 0.5, 0]);
  assert.deepEqual([shares[0].head, shares[1].head], [1, 2]);
  assert.equal(shares[1].weight, 1);
});

test("shares of a token that is looked at are those of a column", () => {
  const shares = findShares(WEIGHTS, PAGE, { heads: [2], pairs: "all" }, { token: 2, side: "to" });
  assert.deepEqual(shares.map(({ mean }) => mean), [0, 1, 0]);
});

test("shares outside of the chosen texts are none", () => {
  const shares = findShares(WEIGHTS, PAGE, { heads: [1], pairs: "A→B" }, {
    token: 1, side: "from",
  });
  assert.deepEqual(shares.map((share) => share === null), [true, true, false]);
});

test("one text may look at a longer one", () => {
  const page = { tokens: TOKENS.slice(0, 2), others: TOKENS.map(() => ({ segment: 0 })) };
  const weights = new Weights(Uint8Array.of(0, 0, 255, 51, 0, 204), 2, 3);
  const { lines } = findLines(weights, page, { ...ALL, heads: [1] });
  assert.deepEqual(lines.map(({ from, to }) => `${from}→${to}`), ["1→0", "1→2", "0→2"]);
  const from = findShares(weights, page, { heads: [1], pairs: "all" }, { token: 0, side: "from" });
  assert.deepEqual(from.map(({ mean }) => mean), [0, 0, 1]);
  const to = findShares(weights, page, { heads: [1], pairs: "all" }, { token: 2, side: "to" });
  assert.equal(to.length, 2);
  assert.equal(to[0].mean, 1);
});
