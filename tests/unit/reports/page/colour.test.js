import assert from "node:assert/strict";
import test from "node:test";

import { contrast, diverging, forgetColours, headColour, inkOn, mix, sequential } from "./colour.js";

const COLOURS = {
  "--page": "#ffffff", "--text": "#1d2329", "--c0": "#0067a5", "--c1": "#c25100",
  "--c2": "#00795a", "--c3": "#a4447f", "--c4": "#8a6a00", "--c5": "#3a3f46",
};

function setColours(colours) {
  globalThis.document = { documentElement: {} };
  globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => ` ${colours[name]}` });
  forgetColours();
}

test("a mixture lies between two colours", () => {
  assert.equal(mix("#000000", "#ffffff", 0), "#000000");
  assert.equal(mix("#000000", "#ffffff", 1), "#ffffff");
  assert.equal(mix("#002040", "#204000", 0.5), "#103020");
});

test("what is no colour is refused", () => {
  assert.throws(() => mix("blue", "#ffffff", 0.5), /expected a colour such as #0067a5, got blue/);
});

test("blue is positive, orange negative, by size up to the limit", () => {
  setColours(COLOURS);
  assert.equal(diverging(0, 2), "#ffffff");
  assert.equal(diverging(2, 2), "#0067a5");
  assert.equal(diverging(9, 2), "#0067a5");
  assert.equal(diverging(-2, 2), "#c25100");
  assert.equal(diverging(1, 2), mix("#ffffff", "#0067a5", 0.5));
  assert.equal(diverging(0, 0), "#ffffff");
});

test("a share goes from the page's colour to blue", () => {
  setColours(COLOURS);
  assert.equal(sequential(0), "#ffffff");
  assert.equal(sequential(1), "#0067a5");
});

test("eighteen heads have eighteen colours that stand out from the page", () => {
  setColours(COLOURS);
  const colours = Array.from({ length: 18 }, (_, index) => headColour(index + 1));
  assert.equal(new Set(colours).size, 18);
  assert.equal(colours[0], "#0067a5");
  assert.ok(colours.every((one) => contrast(one, "#ffffff") > 1.8));
});

test("ink on a head's colour can be read", () => {
  setColours(COLOURS);
  assert.equal(inkOn("#0067a5"), "#ffffff");
  assert.equal(inkOn("#eeeeee"), "#1d2329");
  for (let head = 1; head <= 12; head += 1) {
    assert.ok(contrast(headColour(head), inkOn(headColour(head))) >= 4.5, `head ${head}`);
  }
});

test("colours are read anew when they were forgotten", () => {
  setColours(COLOURS);
  assert.equal(sequential(0), "#ffffff");
  setColours({ ...COLOURS, "--page": "#000000" });
  assert.equal(sequential(0), "#000000");
});
