// The mask view: for every position of the text, the words that the model predicts there.

import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { formatShare } from "./numbers.js";
import { WordTable } from "./word_table.js";

const MODES = [
  { value: "hidden", text: "hidden", title: "each token in turn is replaced by the mask token" },
  { value: "read", text: "as read", title: "the model sees the token itself" },
];

export const view = {
  name: "words",
  controls: [],
  mount(root, page) {
    root.append(new Words(page).root);
  },
};

class Words extends WordTable {
  constructor(page) {
    super(page, ["Token", "Own word"], "");
    this.masks = new Set(page.data.masks);
    this.root = element("div", {}, this.buildChoice(), this.scroll);
    this.show(page.data.hidden === null ? "read" : "hidden");
  }

  buildChoice() {
    if (this.page.data.hidden === null) {
      const limit = this.page.data.limit;
      return element("p", { class: "quiet" }, `This text has more than ${limit} tokens. Each is`
        + " predicted as it is read; hiding one after the other would take too long.");
    }
    const { root, show } = choiceChips("The token itself is", MODES, (mode) => this.show(mode));
    this.showMode = show;
    return root;
  }

  /** Show one of the two kinds of predictions. */
  show(mode) {
    this.showMode?.(mode);
    this.fill(this.page.data[mode]);
  }

  buildOwn({ token, own: [share, rank] }) {
    if (this.masks.has(token)) {
      return { text: null, cell: element("td", { class: "quiet" }, "masked"), style: "is-mask" };
    }
    const cell = element("td", { class: "words-own" }, `${formatShare(share)}, rank ${rank}`);
    return { text: this.page.tokens[token].text, cell, style: null };
  }
}
