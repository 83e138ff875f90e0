import assert from "node:assert/strict";
import test from "node:test";

import {
  describeEffect, describeMap, describeMeasure, findLargest, meanProbability, pairDecisions,
  rankHeads, showSigned, showSize,
} from "./head_ranking.js";

const ROWS = [[0, -0.5], [0.25, 0.125]];

function judge(...probabilities) {
  const decisions = probabilities.map((probability) => ({ said: "door", probability }));
  return { question: "the word at each [MASK]", decisions };
}

function measure(kind, ...probabilities) {
  return { kind, says: { number: -1.5, judgments: [judge(...probabilities)] } };
}

test("heads are ranked by size, and those that change nothing are left out", () => {
  const heads = rankHeads(ROWS, 9);
  assert.deepEqual(heads.map(({ layer, head }) => `${layer}.${head}`), ["1.2", "2.1", "2.2"]);
  assert.equal(rankHeads(ROWS, 2).length, 2);
  assert.equal(findLargest(ROWS), 0.5);
});

test("the effect on a probability is told from where to where", () => {
  const said = describeEffect(measure("probability", 0.75), "ablation", -0.5);
  assert.equal(said, "without it the probability goes from 75.0 % to 25.0 % (−0.5)");
  const mean = describeEffect(measure("probability", 0.75, 0.25), "ablation", 0.1);
  assert.equal(mean, "without it the mean probability goes from 50.0 % to 60.0 % (+0.1)");
});

test("rounding leads to no negative probability", () => {
  const said = describeEffect(measure("probability", 0.25), "ablation", -0.2500001);
  assert.match(said, /to 0 % /);
});

test("turns, numbers and gradients are told as what they are", () => {
  assert.match(describeEffect(measure("vector"), "ablation", 0.012), /vector .* changes by 0\.012$/);
  assert.match(describeEffect(measure("number"), "ablation", -0.012), /changes by −0\.012$/);
  assert.match(describeEffect(measure("number"), "gradient", 0.5), /^the number reacts by 0\.5/);
  assert.match(describeEffect(measure("probability", 1), "gradient", 0.5), /^the loss reacts/);
});

test("what is measured is named", () => {
  assert.match(describeMeasure(measure("probability", 0.6)), /“door”, with a .* of 60.0 %/);
  assert.match(describeMeasure(measure("probability", 0.6, 0.1)), /mean probability of the 2 predictions/);
  assert.match(describeMeasure(measure("number")), /: -1\.5\.$/);
  assert.match(describeMeasure(measure("vector")), /no prediction for the text/);
});

test("each map says what its numbers are", () => {
  assert.match(describeMap("probability", "ablation"), /the probability changes/);
  assert.match(describeMap("vector", "ablation"), /cosine distance/);
  assert.match(describeMap("number", "gradient"), /the number reacts/);
  assert.match(describeMap("probability", "gradient"), /the loss .* reacts/);
});

test("of two outcomes the decisions that change most come first", () => {
  const after = { decisions: [{ kept: 0.5 }, { kept: 0.1 }, { kept: 0.75 }] };
  const changes = pairDecisions(judge(0.5, 0.75, 0.5), after).map(({ change }) => change);
  assert.deepEqual(changes, [-0.65, 0.25, 0]);
});

test("the mean probability is that of all decisions", () => {
  assert.equal(meanProbability(judge(0.5, 0.25, 0.75)), 0.5);
});

test("numbers have two digits that count, and a sign where it matters", () => {
  assert.deepEqual([0.214, -0.00347, 0, 12].map(showSigned), ["+0.21", "−0.0035", "0", "+12"]);
  assert.deepEqual([-0.214, 2.14e-7, 1234.5].map(showSize), ["0.21", "2.1e-7", "1235"]);
});
