import assert from "node:assert/strict";
import test from "node:test";

import { Decisions } from "./decisions.js";

const ROWS = [
  { number: 3, place: "a.csv, row 3", text: 'He said "no",\nand left', given: "bad" },
  { number: 1, place: "a.csv, row 1", text: "=1+1", given: "" },
  { number: 2, place: "a.csv, row 2", text: "plain", given: "good" },
];

function storage(kept = {}) {
  return { kept, getItem: (key) => kept[key] ?? null, setItem: (key, text) => { kept[key] = text; } };
}

test("the table has the rows that were decided, in the order of the page", () => {
  const decisions = new Decisions("sha", storage());
  decisions.make(ROWS[2], "keep", "");
  decisions.make(ROWS[0], "skip", "");
  decisions.make(ROWS[0], "change", 'so "so"');
  assert.equal(decisions.writeTable(ROWS), [
    '\ufeff"number","place","text","label","decision","new_label"',
    '"3","a.csv, row 3","He said ""no"",\nand left","bad","change","so ""so"""',
    '"2","a.csv, row 2","plain","good","keep",""', "",
  ].join("\r\n"));
  assert.deepEqual(decisions.count(ROWS), { keep: 1, change: 1, skip: 0 });
});

test("a browser remembers them by the file, and what it can't is no error", () => {
  const shared = storage();
  new Decisions("sha", shared).make(ROWS[0], "change", "good");
  assert.deepEqual(new Decisions("sha", shared).of(ROWS[0]), { kind: "change", label: "good" });
  assert.equal(new Decisions("another", shared).of(ROWS[0]), undefined);
  const full = { getItem: () => "{damaged", setItem: () => { throw new Error("full"); } };
  for (const one of [undefined, null, full]) {
    const decisions = new Decisions("sha", one);
    decisions.make(ROWS[0], "skip", "");
    assert.equal(decisions.isKept, false);
    assert.equal(decisions.of(ROWS[0]).kind, "skip");
  }
});
