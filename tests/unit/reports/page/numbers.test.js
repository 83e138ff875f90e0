import assert from "node:assert/strict";
import test from "node:test";

import { formatCount, formatShare } from "./numbers.js";

test("shares have one decimal", () => {
  const words = [0, 0.0004, 0.001, 0.042, 0.0996, 0.42, 1].map(formatShare);
  assert.deepEqual(words, ["0 %", "under 0.1 %", "0.1 %", "4.2 %", "10.0 %", "42.0 %", "100.0 %"]);
});

test("counts have groups of digits", () => {
  assert.equal(formatCount(1234567), "1,234,567");
});
