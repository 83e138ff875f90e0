import assert from "node:assert/strict";
import test from "node:test";

import {
  between,
  fitPoints,
  labelWidth,
  linkTokens,
  placeLabels,
  tellShares,
} from "./plane_layout.js";

const SIZE = { width: 400, height: 200, margin: 20 };

test("points fill the drawing at one scale, and up is up", () => {
  const found = fitPoints([[0, 0], [4, 0], null, [2, 2]], SIZE);
  assert.deepEqual(found, [[40, 180], [360, 180], null, [200, 20]]);
});

test("points in one place are in the middle, and there may be none", () => {
  assert.deepEqual(fitPoints([[3, 7], [3, 7]], SIZE), [[200, 100], [200, 100]]);
  assert.deepEqual(fitPoints([[1, 0], [1, 3]], SIZE), [[200, 180], [200, 20]]);
  assert.deepEqual(fitPoints([null], SIZE), [null]);
});

test("a label stands where neither a point nor another label nor the border is", () => {
  const labels = placeLabels([[100, 100], [112, 100], null, [380, 50]], [50, 50, 50, 60], SIZE);
  assert.deepEqual(labels.map((label) => label?.anchor), ["end", "start", undefined, "end"]);
});

test("labels of one place go round it, and the fifth is left out", () => {
  const places = Array.from({ length: 5 }, () => [200, 100]);
  const labels = placeLabels(places, [40, 40, 40, 40, 40], SIZE);
  assert.equal(new Set(labels.slice(0, 4).map((label) => `${label.x} ${label.y}`)).size, 4);
  assert.equal(labels[4], null);
});

test("wide letters take more room", () => {
  assert.equal(labelWidth("漢字"), 2 * labelWidth("ab"));
  assert.equal(labelWidth("😀"), labelWidth("漢"));
});

test("movement begins and ends where it should", () => {
  assert.deepEqual(between([0, 10], [100, 20], 0), [0, 10]);
  assert.deepEqual(between([0, 10], [100, 20], 0.5), [50, 15]);
  assert.deepEqual(between([0, 10], [100, 20], 1), [100, 20]);
});

test("pieces of a word and places of a token are linked, special tokens aren't", () => {
  const words = [["[CLS]", -1], ["cat", 0], ["##s", 0], ["cat", 1], ["[SEP]", -1], ["cat", 2]];
  const tokens = words.map(([text, word]) => ({ text, word, special: word < 0 }));
  assert.deepEqual(linkTokens([...tokens, tokens[4]]), [
    { from: 1, to: 2, kind: "pieces" },
    { from: 1, to: 3, kind: "same" },
    { from: 3, to: 5, kind: "same" },
  ]);
});

test("what a plane shows is told in words", () => {
  assert.match(tellShares([0.31, 0.142], 5), /shows 45.2 % .* 31.0 % .* 14.2 %/);
  assert.match(tellShares([0, 0], 3), /All vectors are equal/);
  assert.match(tellShares([0, 0], 1), /one point/);
});
