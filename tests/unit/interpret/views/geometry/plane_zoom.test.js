import assert from "node:assert/strict";
import test from "node:test";

import { Zoom } from "./plane_zoom.js";

const SIZE = { width: 400, height: 200 };

test("at first all is seen as it is", () => {
  const places = [[10, 20], null];
  assert.deepEqual(new Zoom(SIZE).apply(places), places);
});

test("what is zoomed in around a place has it in the middle", () => {
  const zoom = new Zoom(SIZE);
  zoom.by(2, [100, 50]);
  assert.deepEqual(zoom.apply([[100, 50], [110, 50]]), [[200, 100], [220, 100]]);
  zoom.by(2, null);
  assert.deepEqual(zoom.apply([[110, 50]]), [[240, 100]]);
  assert.deepEqual([zoom.sees([240, 100]), zoom.sees([401, 100]), zoom.sees([3, -1])],
    [true, false, false]);
});

test("the whole can't be made smaller, and is never lost", () => {
  const zoom = new Zoom(SIZE);
  zoom.move(50, 50);
  assert.deepEqual(zoom.apply([[1, 2]]), [[1, 2]]);
  zoom.by(1.5, [1, 2]);
  zoom.by(1 / 1.5, null);
  assert.deepEqual(zoom.apply([[1, 2]]), [[1, 2]]);
  zoom.by(1e9, [1, 2]);
  assert.ok(zoom.factor < 100);
  zoom.by(0, null);
  assert.deepEqual(zoom.apply([[1, 2]]), [[1, 2]]);
});

test("what is moved follows the pointer", () => {
  const zoom = new Zoom(SIZE);
  zoom.by(4, [100, 50]);
  zoom.move(30, -10);
  assert.deepEqual(zoom.apply([[100, 50]]), [[230, 90]]);
});
