import assert from "node:assert/strict";
import test from "node:test";

import { stepIndex } from "./keys.js";

test("arrows go through a list and end at its borders", () => {
  assert.equal(stepIndex("ArrowRight", 0, 3), 1);
  assert.equal(stepIndex("ArrowDown", 1, 3), 2);
  assert.equal(stepIndex("ArrowDown", 2, 3), null);
  assert.equal(stepIndex("ArrowLeft", 0, 3), null);
});

test("arrows go through a grid", () => {
  assert.equal(stepIndex("ArrowDown", 1, 8, 4), 5);
  assert.equal(stepIndex("ArrowUp", 5, 8, 4), 1);
  assert.equal(stepIndex("ArrowUp", 1, 8, 4), null);
  assert.equal(stepIndex("ArrowRight", 1, 8, 4), 2);
});

test("Home and End go to the ends, other keys nowhere", () => {
  assert.equal(stepIndex("Home", 5, 8, 4), 0);
  assert.equal(stepIndex("End", 5, 8, 4), 7);
  assert.equal(stepIndex("Enter", 5, 8, 4), null);
});
