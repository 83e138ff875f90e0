import assert from "node:assert/strict";
import test from "node:test";

import { contrast, diverging, forgetColors, headColor, inkOn, mix, sequential } from "./color.js";

const COLORS = {
  "--page": "#ffffff", "--text": "#1d2329", "--c0": "#0067a5", "--c1": "#c25100",
  "--c2": "#00795a", "--c3": "#a4447f", "--c4": "#8a6a00", "--c5": "#3a3f46",
};

function setColors(colors) {
  globalThis.document = { documentElement: {} };
  globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => ` ${colors[name]}` });
  forgetColors();
}

test("a mixture lies between two colors", () => {
  assert.equal(mix("#000000", "#ffffff", 0), "#000000");
  assert.equal(mix("#000000", "#ffffff", 1), "#ffffff");
  assert.equal(mix("#002040", "#204000", 0.5), "#103020");
});

test("what is no color is refused", () => {
  assert.throws(() => mix("blue", "#ffffff", 0.5), /expected a color such as #0067a5, got blue/);
});

test("blue is positive, orange negative, by size up to the limit", () => {
  setColors(COLORS);
  assert.equal(diverging(0, 2), "#ffffff");
  assert.equal(diverging(2, 2), "#0067a5");
  assert.equal(diverging(9, 2), "#0067a5");
  assert.equal(diverging(-2, 2), "#c25100");
  assert.equal(diverging(1, 2), mix("#ffffff", "#0067a5", 0.5));
  assert.equal(diverging(0, 0), "#ffffff");
});

test("a share goes from the page's color to blue", () => {
  setColors(COLORS);
  assert.equal(sequential(0), "#ffffff");
  assert.equal(sequential(1), "#0067a5");
});

test("eighteen heads have eighteen colors that stand out from the page", () => {
  setColors(COLORS);
  const colors = Array.from({ length: 18 }, (_, index) => headColor(index + 1));
  assert.equal(new Set(colors).size, 18);
  assert.equal(colors[0], "#0067a5");
  assert.ok(colors.every((one) => contrast(one, "#ffffff") > 1.8));
});

test("ink on a head's color can be read", () => {
  setColors(COLORS);
  assert.equal(inkOn("#0067a5"), "#ffffff");
  assert.equal(inkOn("#eeeeee"), "#1d2329");
  for (let head = 1; head <= 12; head += 1) {
    assert.ok(contrast(headColor(head), inkOn(headColor(head))) >= 4.5, `head ${head}`);
  }
});

test("colors are read anew when they were forgotten", () => {
  setColors(COLORS);
  assert.equal(sequential(0), "#ffffff");
  setColors({ ...COLORS, "--page": "#000000" });
  assert.equal(sequential(0), "#000000");
});
