import { element } from "./dom.js";
import { formatShare } from "./numbers.js";
import { WordTable } from "./word_table.js";

/** The words that a model predicts after each token. */
export const view = {
  name: "next",
  controls: [],
  mount(root, page) {
    const perplexity = page.data.perplexity.toLocaleString("en", { maximumSignificantDigits: 3 });
    const table = new NextWords(page, ["After", "Comes next"], "next-table");
    root.append(
      element("p", { class: "quiet" }, `Perplexity of this text: ${perplexity}.`), table.scroll);
    table.fill(page.data.steps);
  },
};

class NextWords extends WordTable {
  buildOwn({ next, own: [share, rank] }) {
    const cell = element(
      "td", { class: "next-own" },
      element("span", { dir: "auto" }, next), " ",
      element("span", { class: "quiet" }, `${formatShare(share)}, rank ${rank}`),
    );
    return { text: next, cell, style: null };
  }
}
