import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { findLabels, legible } from "./labels.js";

test("labels that begin with what was typed come first, the shortest of them", () => {
  const labels = ["a refund", "Refunds", "Refund", "10", "1", "Ärger"];
  assert.deepEqual(findLabels(labels, "ref"), ["Refund", "Refunds", "a refund"]);
  assert.deepEqual(findLabels(labels, "1 "), ["1", "10"]);
  assert.deepEqual(findLabels(labels, "a\u0308"), ["Ärger"]);
  assert.deepEqual(findLabels(labels, " X"), ["X"]);
});

test("few labels are all offered before anything is typed, and many are eight at most", () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `label ${index}`);
  assert.deepEqual(findLabels(["b", "a"], ""), ["b", "a"]);
  assert.deepEqual(findLabels(many, " "), []);
  assert.equal(findLabels(many, "99")[0], "label 99");
  assert.equal(findLabels(many, "l").length, 8);
  assert.deepEqual(findLabels([], " 4.5 "), ["4.5"]);
});

test("what Python shows as another character is shown as another here", () => {
  const illegible = JSON.parse(readFileSync("illegible.json", "utf8"));
  const found = Array.from({ length: 0x10000 }, (_, code) => code)
    .filter((code) => legible(String.fromCharCode(code)) === "\ufffd" && code !== 0xfffd);
  assert.deepEqual(found, illegible);
  assert.equal(legible("a\u{1f600}\tb\n"), "a\u{1f600}\tb\n");
});
