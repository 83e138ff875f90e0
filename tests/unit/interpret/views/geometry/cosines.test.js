import assert from "node:assert/strict";
import test from "node:test";

import { listSeries } from "./contexts_panel.js";
import { cosineTicks, spread } from "./cosine_chart.js";

const CONTEXTS = {
  places: [["a ", "bank", ""], ["the ", "bank", ""], ["", "bank", "s"]],
  cosines: [
    [[1, 0.9, 0.8], [0.9, 1, 0.7], [0.8, 0.7, 1]],
    [[1, 0.5, 0.4], [0.5, 1, 0.3], [0.4, 0.3, 1]],
  ],
  mean: [0.8, 0.4],
  different: [null, 0.1],
};

test("a chosen place is compared with each other place, and with the means", () => {
  const found = listSeries(CONTEXTS, 1).map(({ title, values }) => [title, values]);
  assert.deepEqual(found, [
    ["place 1", [0.9, 0.5]],
    ["place 3", [0.7, 0.3]],
    ["mean of all places", [0.8, 0.4]],
    ["different words", [null, 0.1]],
  ]);
});

test("with two places there is one line, which is the mean", () => {
  const two = { ...CONTEXTS, places: CONTEXTS.places.slice(0, 2) };
  const titles = listSeries(two, 0).map(({ title }) => title);
  assert.deepEqual(titles, ["place 2", "different words"]);
});

test("ticks go from below the lowest value to 1", () => {
  const round = (ticks) => ticks.map((tick) => Number(tick.toFixed(3)));
  assert.deepEqual(round(cosineTicks([0.62, 0.9])), [0.6, 0.7, 0.8, 0.9, 1]);
  assert.deepEqual(round(cosineTicks([-0.05])), [-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(round(cosineTicks([])), [0.8, 0.9, 1]);
});

test("labels move apart, keep their order and stay above the end", () => {
  assert.deepEqual(spread([50, 10, 12], 10, 100), [50, 10, 20]);
  assert.deepEqual(spread([99, 98, 97], 10, 100), [100, 90, 80]);
  assert.deepEqual(spread([], 10, 100), []);
});
