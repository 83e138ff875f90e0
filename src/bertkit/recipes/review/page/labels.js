import { element } from "./dom.js";

const MAX_SHOWN = 8;
const ILLEGIBLE = new RegExp( // as `make_legible` in Python
  String.raw`[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\p{Cs}\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff`
  + String.raw`\ufff9-\ufffb\ufffe\uffff]`, "gu");

/** Untrusted text as it may be shown: nothing in it hides or reorders what stands beside it. */
export function legible(text) {
  return text.replace(ILLEGIBLE, "\ufffd");
}

/**
 * At most eight labels that may be meant: those that begin with what was typed, the shortest first,
 * then those that have it elsewhere; if there are none, what was typed as a new label.
 */
export function findLabels(labels, typed) {
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const wanted = fold(typed.trim());
  if (wanted === "") {
    return labels.length > MAX_SHOWN ? [] : labels;
  }
  const found = labels.filter((label) => fold(label).includes(wanted));
  const [first, others] = [true, false].map((begins) =>
    found.filter((label) => fold(label).startsWith(wanted) === begins));
  const ranked = first.sort((one, two) => one.length - two.length).concat(others);
  return found.length === 0 ? [typed.trim()] : ranked.slice(0, MAX_SHOWN);
}

/** A field for the beginning of a label, and buttons of the labels that may be meant. */
export class LabelField {
  /** `take` gets the chosen label; `leave` is called when none was chosen. */
  constructor(labels, take, leave) {
    Object.assign(this, { labels, take, leave });
    this.input = element("input", { id: "label", autocomplete: "off", spellcheck: "false", dir: "auto",
      oninput: () => this.show(), onkeydown: (event) => this.press(event) });
    this.found = element("div", { class: "chips", role: "group", "aria-label": "Labels",
      "aria-live": "polite" });
    this.root = element("div", { class: "field" },
      element("label", { for: "label" }, "Another label: type its beginning (Esc leaves)"),
      this.input, this.found);
    this.show();
  }

  show(typed = this.input.value) {
    this.input.value = typed;
    this.labelsFound = findLabels(this.labels, typed);
    this.found.replaceChildren(...this.labelsFound.map((label, index) => element("button",
      { type: "button", class: "chip", onclick: () => this.take(label) },
      element("bdi", {}, legible(label)), this.labels.includes(label) ? null : " (new)",
      typed !== "" && index === 0 ? [" ", element("kbd", {}, "Enter")] : null)));
    if (typed !== "") {
      this.root.scrollIntoView({ block: "nearest" });
    }
  }

  press(event) {
    if (event.key === "Enter" && this.input.value.trim() !== "" && this.labelsFound.length > 0) {
      event.preventDefault();
      this.take(this.labelsFound[0]);
    } else if (event.key === "Escape") {
      this.leave();
    }
  }
}
