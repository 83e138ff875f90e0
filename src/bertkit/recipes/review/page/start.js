import { readBytes } from "./arrays.js";
import { attempt, Decisions } from "./decisions.js";
import { complaint, element } from "./dom.js";
import { LabelField } from "./labels.js";
import { formatCount } from "./numbers.js";
import { buildCard, describeRow, tellDecision } from "./row.js";
import { RowList } from "./row_list.js";
import { State } from "./state.js";
import { followTheme, preferredTheme, themeButton } from "./theme.js";

const MAX_OPEN = 5; // findings; more are folded at first

/** One row at a time, about which something is decided, and the list of all rows. */
class Review {
  constructor(identity, labels, rows) {
    this.rows = rows;
    this.places = new Map(rows.map(({ number }, index) => [number, index]));
    this.decisions = new Decisions(identity, attempt(() => localStorage));
    this.card = element("section", { class: "card", tabindex: -1, "aria-labelledby": "text given" });
    this.field = new LabelField(labels, (label) => this.change(label), () => this.card.focus());
    this.list = new RowList(rows.length, (index) =>
      describeRow(rows[index], this.decisions.of(rows[index])), (index) => this.show(index));
    this.progress = element("progress", { max: rows.length, "aria-label": "Decided" });
    this.counts = element("span", { class: "quiet" });
    this.said = element("p", { class: "for-ears", role: "status" });
    const save = element("button", { type: "button", class: "chip", "aria-keyshortcuts": "Control+S",
      onclick: () => this.save() }, "Save decisions",
      element("kbd", { "aria-hidden": "true" }, "Ctrl S"));
    this.root = element("div", {},
      element("div", { class: "state" }, this.progress, this.counts, save),
      element("div", { class: "review" },
        element("div", {}, this.card, this.field.root, this.said), this.list.root));
    document.addEventListener("keydown", (event) => this.press(event));
  }

  show(index) {
    this.current = Math.max(0, Math.min(this.rows.length - 1, index));
    const row = this.rows[this.current];
    this.card.replaceChildren(...buildCard(row, this.decisions.of(row), this));
    this.field.show("");
    this.list.show(this.current);
    this.card.focus();
    const { keep, change, skip } = this.decisions.count(this.rows);
    this.progress.value = keep + change + skip;
    this.counts.textContent = `${formatCount(keep + change + skip)} of ${formatCount(this.rows.length)}`
      + ` decided: ${formatCount(change)} changed, ${formatCount(keep)} kept, ${formatCount(skip)}`
      + ` skipped. ${this.decisions.isKept ? "This browser remembers them."
        : "This browser remembers nothing: save before you close the page."}`;
  }

  move(step) {
    this.show(this.current + step);
  }

  /** Decide about the row and go to the next one. */
  decide(kind, label = "") {
    const row = this.rows[this.current];
    this.decisions.make(row, kind, label);
    this.said.textContent = `Row ${row.number}: ${tellDecision(this.decisions.of(row))}.`;
    this.move(1);
  }

  change(label) {
    if (label !== "") { // that is, if one is likely
      const isGiven = label === this.rows[this.current].given;
      this.decide(isGiven ? "keep" : "change", isGiven ? "" : label);
    }
  }

  save() {
    const table = new Blob([this.decisions.writeTable(this.rows)], { type: "text/csv" });
    const address = URL.createObjectURL(table);
    element("a", { href: address, download: "decisions.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  press(event) {
    const { key, target, repeat } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const isButton = target.closest("button, summary") !== null && (key === " " || key === "Enter");
    if (isCommand && key.toLowerCase() === "s") {
      event.preventDefault();
      this.save();
    } else if (!isCommand && !event.altKey && !isButton && target !== this.field.input) {
      const steps = { ArrowUp: () => this.move(-1), ArrowDown: () => this.move(1) };
      const decisions = { " ": () => this.decide("keep"), ArrowRight: () => this.decide("skip"),
        Enter: () => this.change(this.rows[this.current].likely) };
      const act = steps[key] ?? decisions[key];
      if (act) {
        event.preventDefault();
        (repeat && key in decisions ? () => {} : act)(); // a key held down decides about one row
      } else if (key.length === 1) {
        this.field.input.focus(); // which then gets the letter
      }
    }
  }
}

async function start() {
  const main = document.getElementById("page");
  const { identity, summary } = JSON.parse(document.getElementById("data").textContent);
  const theme = new State({ theme: preferredTheme(), heads: [1], head: 1 });
  followTheme(theme);
  const button = themeButton(theme, (name) => theme.set({ theme: name }));
  main.append(element("div", { class: "heading" }, document.querySelector("h1"), button),
    element("details", { open: summary.length <= MAX_OPEN }, element("summary", {}, "Findings"),
      element("ul", {}, summary.map((line) => element("li", {}, line)))));
  const read = async (name) => JSON.parse(new TextDecoder().decode(await readBytes(name)));
  const [labels, rows] = await Promise.all([read("labels"), read("rows")]);
  const review = new Review(identity, labels, rows);
  const first = rows.findIndex((row) => !review.decisions.of(row));
  main.append(rows.length > 0 ? review.root : "There is no row to look at.");
  if (rows.length > 0) {
    review.show(Math.max(0, first));
  }
}

start().catch((error) => {
  document.getElementById("page").append(complaint(`The rows can't be shown: ${error.message}`));
  throw error;
});
