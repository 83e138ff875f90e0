import assert from "node:assert/strict";
import test from "node:test";

import { isInPairs, State, toggleHead } from "./state.js";

const START = {
  layer: 1, heads: [1, 2, 3], head: 1, token: null, side: "from", pairs: "all", theme: "light",
};

function watch(changes) {
  const state = new State({ ...START });
  const told = [];
  state.subscribe((_, changed) => told.push(changed));
  state.set(changes);
  return { state: state.current, told };
}

test("those who listen are told what changed", () => {
  const { state, told } = watch({ layer: 3, pairs: "all" });
  assert.equal(state.layer, 3);
  assert.deepEqual(told, [["layer"]]);
});

test("nobody is told where nothing changed", () => {
  assert.deepEqual(watch({ heads: [1, 2, 3] }).told, []);
});

test("nobody is told who has ended listening", () => {
  const state = new State({ ...START });
  const end = state.subscribe(() => assert.fail("told"));
  end();
  state.set({ layer: 2 });
});

test("a head in focus is a chosen one", () => {
  assert.deepEqual(watch({ head: 5 }).state.heads, [5]);
  assert.deepEqual(watch({ head: 2 }).state.heads, [1, 2, 3]);
  assert.equal(watch({ heads: [2, 3] }).state.head, 2);
  assert.equal(watch({ heads: [2, 3], head: 3 }).state.head, 3);
});

test("what isn't in the state is refused", () => {
  assert.throws(() => watch({ layers: 2 }), /no layers/);
});

test("a click adds a head or takes it away, and the last one stays", () => {
  assert.deepEqual(toggleHead([2, 10], 9), [2, 9, 10]);
  assert.deepEqual(toggleHead([2, 9, 10], 9), [2, 10]);
  assert.deepEqual(toggleHead([9], 9), [9]);
});

test("pairs name the texts of both tokens", () => {
  const [first, second] = [{ segment: 0 }, { segment: 1 }];
  assert.ok(isInPairs("all", second, first));
  assert.ok(isInPairs("A→B", first, second));
  assert.ok(!isInPairs("A→B", second, first));
  assert.ok(isInPairs("B→B", second, second));
});
