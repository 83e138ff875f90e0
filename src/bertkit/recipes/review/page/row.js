import { element } from "./dom.js";
import { legible } from "./labels.js";
import { formatShare } from "./numbers.js";

const MAX_TWINS = 20;
const LETTERS_IN_LIST = 160;
const SIGNS = { keep: "✓", change: "→", skip: "…" };

/** A decision in words. */
export function tellDecision({ kind, label }) {
  return { keep: "label kept", change: `changed to ${legible(label)}`, skip: "skipped" }[kind];
}

/** The nodes of a row in the list. */
export function describeRow({ number, text, given }, made) {
  return [
    element("span", { class: "number quiet" }, number),
    element("span", { class: "made", role: "img", "aria-label": made?.kind ?? "open" },
      SIGNS[made?.kind] ?? ""),
    element("bdi", { class: "given" }, legible(made?.label || given)),
    element("bdi", {}, legible(text.slice(0, LETTERS_IN_LIST))),
  ];
}

/** The nodes of the row about which something is decided. */
export function buildCard(row, made, review) {
  const { place, text, given, likely, probability, reasons } = row;
  const name = (label) => element("b", { dir: "auto" }, legible(label));
  const button = (key, shortcut, words, onclick) => element("button",
    { type: "button", class: "chip", "aria-keyshortcuts": shortcut, onclick },
    words, element("kbd", { "aria-hidden": "true" }, key));
  return [
    element("p", { class: "quiet" }, legible(place)),
    element("p", { id: "text", class: "text", dir: "auto", tabindex: 0 }, legible(text)),
    element("p", { id: "given" }, given === "" ? "No label" : ["Labeled ", name(given)],
      likely === "" ? null : [", likely ", name(likely)],
      probability === null ? null : ` (${formatShare(probability)})`),
    element("ul", {}, reasons.map((reason) => element("li", {}, legible(reason))),
      buildTwins(row, review)),
    made ? element("p", { class: "made" }, `Decided: ${tellDecision(made)}`) : "",
    element("div", { class: "chips" },
      button("Space", "Space", "Keep", () => review.decide("keep")),
      likely === "" ? null : button("Enter", "Enter", ["Change to ", name(likely)],
        () => review.change(likely)),
      button("→", "ArrowRight", "Skip", () => review.decide("skip")),
      button("↑", "ArrowUp", "Back", () => review.move(-1)),
      button("↓", "ArrowDown", "Next", () => review.move(1))),
  ];
}

/** The rows that repeat this one; those on the page are buttons that go there. */
function buildTwins({ twins }, review) {
  const links = twins.slice(0, MAX_TWINS).map((number) => {
    const index = review.places.get(number);
    return index === undefined ? ` row ${number}` : [" ", element("button",
      { type: "button", class: "chip", onclick: () => review.show(index) }, `row ${number}`)];
  });
  const others = twins.length - links.length;
  return twins.length === 0 ? null
    : element("li", {}, "repeated in", links, others > 0 ? ` and ${others} more` : null);
}
