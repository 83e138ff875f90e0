import { headColor, inkOn } from "./color.js";
import { element } from "./dom.js";
import { formatShare } from "./numbers.js";

const NUM_ROWS = 12;

/**
 * The same as `shareTable` in a sentence, for those who hear the page.
 *
 * @returns {string}
 */
export function shareSentence(page, focus, shares) {
  if (focus === null) {
    return "";
  }
  const [own, others] = sides(page, focus);
  const words = sortShares(shares).slice(0, 3)
    .map(({ index, mean }) => `${others[index].text} ${formatShare(mean)}`);
  const verb = focus.side === "from" ? "attends to" : "is attended to by";
  return `${own[focus.token].text} ${verb} ${words.join(", ")}`;
}

/** The tokens among which the one in focus is, and those of the other side. */
function sides({ tokens, others }, { side }) {
  return side === "from" ? [tokens, others] : [others, tokens];
}

function sortShares(shares) {
  const shown = shares.flatMap((share, index) => (share === null ? [] : [{ ...share, index }]));
  return shown.sort((first, second) => second.mean - first.mean || first.index - second.index);
}

/**
 * What a token attends to, or what attends to it, in numbers.
 *
 * @param {Page} page
 * @param {{token: number, side: string}|null} focus
 * @param {Object[]|null} shares of `findShares`.
 * @returns {HTMLElement}
 */
export function shareTable(page, focus, shares) {
  if (focus === null) {
    return element("p", { class: "quiet" }, "Point at a token, or tap it, to read its numbers.");
  }
  const { state } = page;
  const [own, others] = sides(page, focus);
  const shown = sortShares(shares);
  const hasMany = state.heads.length > 1;
  const rows = shown.slice(0, NUM_ROWS).map((share) => tableRow(others, share, hasMany));
  const columns = hasMany ? ["token", "mean", "strongest head"] : ["token", "attention"];
  const heading = columns.map((name, index) =>
    element("th", { scope: "col", class: index === 0 ? null : "number" }, name),
  );
  return element(
    "table", { class: "shares" },
    element("caption", {}, caption(state, own[focus.token], focus)),
    element("thead", {}, element("tr", {}, heading)),
    element("tbody", {}, rows, restRow(shown.slice(NUM_ROWS), hasMany, focus)),
  );
}

function caption(state, token, { side, token: index }) {
  const heads = state.heads.length === 1 ? `head ${state.heads[0]}` : `${state.heads.length} heads`;
  const name = element("b", { dir: "auto" }, token.text);
  const words = side === "from" ? "attends to" : "is attended to by";
  return [name, ` (token ${index + 1}) ${words}, layer ${state.layer}, ${heads}:`];
}

function tableRow(tokens, { index, mean, head, weight }, hasMany) {
  const style = { "--color": headColor(head), "--ink": inkOn(headColor(head)) };
  const strongest = element(
    "td", { class: "number" },
    element("span", { class: "head-mark", style }, head),
    formatShare(weight),
  );
  return element(
    "tr", {},
    element("td", { dir: "auto" }, tokens[index].text, " ", place(index)),
    element("td", { class: "number" }, formatShare(mean)),
    hasMany ? strongest : null,
  );
}

function place(index) {
  return element("span", { class: "quiet" }, index + 1);
}

function restRow(rest, hasMany, focus) {
  if (rest.length === 0) {
    return [];
  }
  const sum = rest.reduce((total, { mean }) => total + mean, 0);
  const share = focus.side === "from" ? formatShare(sum) : `${formatShare(sum / rest.length)} each`;
  return element(
    "tr", { class: "quiet" },
    element("td", {}, rest.length === 1 ? "1 other" : `${rest.length} others`),
    element("td", { class: "number" }, share),
    hasMany ? element("td") : null,
  );
}
