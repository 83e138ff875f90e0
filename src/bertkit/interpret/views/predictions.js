// The predictions of the model for the text, with all its heads and without some.

import { element } from "./dom.js";
import { pairDecisions, showSigned, showSize } from "./head_ranking.js";
import { formatShare } from "./numbers.js";
import { scrollBox } from "./scroll.js";

const MOST_ROWS = 30;

/**
 * The predictions; where heads are switched off, beside those with all of them.
 *
 * @param {Page} page of the importance view.
 * @returns {HTMLElement}
 */
export function describeOutcome(page) {
  const { says, whole } = page.data;
  const names = page.without.join(", ");
  const title = whole === null ? "Predictions of the model" : `Changes without ${names}`;
  const parts = says.judgments.map((after, index) => {
    const before = whole === null ? null : whole.judgments[index];
    return describeJudgment(before, after, page);
  });
  const change = whole === null ? null : describeChange(page.data);
  const isSilent = parts.length === 0 && change === null && says.number === null;
  return element("section", { class: "said" }, isSilent ? null : element("h2", {}, title),
    describeNumber(says, whole), parts, change);
}

function describeNumber(says, whole) {
  if (says.number === null) {
    return null;
  }
  const before = whole === null ? "" : `; with all heads ${whole.number}`;
  return element("p", {}, `The model predicts the number ${says.number}${before}.`);
}

function describeJudgment(before, after, page) {
  const heading = element("h3", {}, `Prediction: ${after.question}`);
  const answer = after.answer === null ? null : describeAnswer(before, after);
  const table = before === null
    ? listDecisions(after, page)
    : compareDecisions(before, after, page);
  const rest = after.decisions.length - MOST_ROWS;
  const order = before === null ? "" : ", which change less";
  const more = rest > 0 ? element("p", { class: "quiet" }, `and ${rest} more${order}`) : null;
  return [heading, answer, scrollBox(table), more];
}

function describeAnswer(before, after) {
  const earlier = before === null ? "" : `; with all heads “${before.answer}”`;
  return element("p", {}, `The answer is “${after.answer}”${earlier}.`);
}

function listDecisions({ decisions }, page) {
  const rows = decisions.slice(0, MOST_ROWS).map((decision) => [
    buildAbout(decision, page), decision.said, formatShare(decision.probability),
    decision.likeliest.filter(([name]) => name !== decision.said)
      .map(([name, share]) => `${name} ${formatShare(share)}`).join(", "),
  ]);
  return buildTable(["about", "prediction", "probability", "other choices"], rows);
}

function compareDecisions(before, after, page) {
  const pairs = pairDecisions(before, after).slice(0, MOST_ROWS);
  const rows = pairs.map(({ before: first, after: second, change }) => [
    buildAbout(first, page),
    `${first.said} ${formatShare(first.probability)}`,
    element(first.said === second.said ? "span" : "b", {},
      `${second.said} ${formatShare(second.probability)}`),
    `${formatShare(first.probability)} → ${formatShare(second.kept)} (${showSigned(change)})`,
  ]);
  return buildTable([
    "about", "with all heads", "without them", "probability of the prediction with all heads",
  ], rows);
}

/** What a decision is about; a token of the text can be chosen there, for all views. */
function buildAbout({ about, token }, page) {
  if (token === null) {
    return about;
  }
  const choose = () => page.set({ token });
  return element(
    "button", { type: "button", class: "chip", title: "choose this token", onclick: choose },
    `${about} `, element("span", { class: "quiet" }, token + 1),
  );
}

function buildTable(names, rows) {
  const heads = names.map((name) => element("th", { scope: "col" }, name));
  const body = rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell))));
  return element("table", {}, element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, body));
}

function describeChange({ change }) {
  return element("p", {}, "The mean vector of the tokens changes by a cosine distance of "
    + `${showSize(change.vector)}; each token's vector moves by `
    + `${formatShare(change.tokens)} of its length on average.`);
}
