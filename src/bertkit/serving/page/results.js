import { element } from "./dom.js";
import { formatShare } from "./numbers.js";

const NUM_COLORS = 6;
const MAX_ROWS = 50;

/** The only result, whether one input or a list of one was sent. */
export function only({ results }) {
  return Array.isArray(results) ? results[0] : results;
}

/** Names, each with a bar for its share of 1, which is written in percent, or as `text`. */
export function barTable(title, rows) {
  const lines = rows.slice(0, MAX_ROWS).map(({ name, share, text }) => {
    const width = `${100 * Math.max(0, Math.min(1, share))}%`;
    return element(
      "tr", {},
      element("th", { scope: "row", dir: "auto" }, name),
      element("td", { class: "number" }, text ?? formatShare(share)),
      element("td", { class: "track", "aria-hidden": "true" },
        element("div", { class: "bar", style: { width } })),
    );
  });
  const head = rows.length > MAX_ROWS ? `${title}, the first ${MAX_ROWS} of ${rows.length}` : title;
  return element("table", { class: "bars" },
    element("caption", {}, head), element("tbody", {}, lines));
}

/**
 * A text with marked parts {start, stop, kind, note}, whose places are those of characters, not of
 * UTF-16 units.
 */
export function markedText(text, parts) {
  const letters = [...text];
  const kinds = [...new Set(parts.map(({ kind }) => kind))].sort();
  const nodes = [];
  let end = 0;
  for (const { start, stop, kind, note } of parts) {
    nodes.push(letters.slice(end, start).join(""), element(
      "mark", { class: kindClass(kinds, kind), title: note }, letters.slice(start, stop).join(""),
      element("small", {}, kind),
    ));
    end = stop;
  }
  nodes.push(letters.slice(end).join(""));
  return element("p", { class: "marked", dir: "auto" }, nodes);
}

/** How often each kind of marked parts occurs, in the colors of `markedText`. */
export function kindLegend(parts) {
  const kinds = [...new Set(parts.map(({ kind }) => kind))].sort();
  const items = kinds.map((kind) => {
    const count = parts.filter((part) => part.kind === kind).length;
    return element("li", {}, element("span", { class: `kind ${kindClass(kinds, kind)}` }, kind),
      ` ${count}`);
  });
  return element("ul", { class: "kinds", "aria-label": "Kinds" }, items);
}

function kindClass(kinds, kind) {
  return `kind-${kinds.indexOf(kind) % NUM_COLORS}`;
}

/** Text that a model wrote. */
export function written(text, before = "") {
  return element("p", { class: "written", dir: "auto" },
    before === "" ? null : element("span", { class: "quiet" }, before),
    text === "" ? element("span", { class: "quiet" }, " (nothing)") : text);
}
