// The mask view: for every place of the text, the words that the model would put there.

import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { formatShare } from "./numbers.js";

const MODES = [
  { value: "hidden", text: "hidden", title: "each token in turn is covered by [MASK]" },
  { value: "read", text: "as read", title: "the model sees the token itself" },
];

export const view = {
  name: "words",
  controls: [],
  mount(root, page) {
    const words = new Words(page);
    root.append(words.root);
    page.subscribe(() => words.mark());
    words.mark();
  },
};

class Words {
  constructor(page) {
    this.page = page;
    this.masks = new Set(page.data.masks);
    this.table = element("table", { class: "words-table" });
    const scroll = element("div", { class: "scroll" }, this.table);
    this.root = element("div", {}, this.buildChoice(), scroll);
    this.fill(page.data.hidden === null ? "read" : "hidden");
    this.table.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        page.set({ token: null });
      }
    });
  }

  buildChoice() {
    if (this.page.data.hidden === null) {
      const limit = this.page.data.limit;
      return element("p", { class: "quiet" }, `This text has more than ${limit} tokens. Each is`
        + " told as it is read; hiding one after the other would take too long.");
    }
    const { root, show } = choiceChips("The token itself is", MODES, (mode) => this.fill(mode));
    this.showMode = show;
    return root;
  }

  /** Tell one of the two kinds of words; the chosen token stays. */
  fill(mode) {
    this.showMode?.(mode);
    const places = this.page.data[mode];
    const chosen = Math.max(0, places.findIndex(({ token }) => token === this.page.state.token));
    this.buttons = places.map((place) => this.buildToken(place.token));
    this.rows = places.map((place, index) => this.buildRow(place, this.buttons[index]));
    this.body = element("tbody", {}, this.rows);
    this.table.replaceChildren(buildHead(["Token", "Own word"], places[0].words.length), this.body);
    rove(this.body, this.buttons, 1, chosen);
    this.places = places;
    this.mark();
  }

  buildToken(token) {
    const toggle = () => this.page.set({ token: this.page.state.token === token ? null : token });
    return element(
      "button", { type: "button", class: "words-token", onclick: toggle },
      this.page.tokens[token].text,
    );
  }

  buildRow({ token, words, own: [share, rank] }, button) {
    const isMask = this.masks.has(token);
    const own = isMask
      ? element("td", { class: "quiet" }, "to be found")
      : element("td", { class: "words-own" }, `${formatShare(share)}, rank ${rank}`);
    const text = isMask ? null : this.page.tokens[token].text;
    return element(
      "tr", { class: isMask ? "is-mask" : null },
      element("th", { scope: "row" }, button),
      own,
      words.map(([word, probability]) => buildGuess(word, probability, word === text)),
    );
  }

  /** Mark the row of the token that is chosen on the page, and bring it into sight. */
  mark() {
    this.places.forEach(({ token }, index) => {
      const isChosen = token === this.page.state.token;
      this.rows[index].classList.toggle("is-chosen", isChosen);
      this.buttons[index].setAttribute("aria-pressed", String(isChosen));
      if (isChosen) {
        this.rows[index].scrollIntoView({ block: "nearest" });
      }
    });
  }
}

/**
 * The heading of a table of words.
 *
 * @param {string[]} names of the first columns.
 * @param {number} numWords columns of likely words.
 * @returns {HTMLElement}
 */
export function buildHead(names, numWords) {
  const ranks = ["Likeliest", "2nd", "3rd", "4th", "5th"].slice(0, numWords);
  const cells = [...names, ...ranks].map((name) => element("th", { scope: "col" }, name));
  return element("thead", {}, element("tr", {}, cells));
}

/**
 * A likely word with its probability as a bar and in words.
 *
 * @param {string} word
 * @param {number} probability
 * @param {boolean} isOwn whether it really stands there.
 * @returns {HTMLElement}
 */
export function buildGuess(word, probability, isOwn) {
  const bar = element("span", {
    class: "words-bar", "aria-hidden": "true", style: { "inline-size": `${100 * probability}%` },
  });
  const share = element("span", { class: "words-share" }, formatShare(probability));
  const text = element("span", { class: "words-word" }, word);
  return element("td", { class: isOwn ? "words-guess is-own" : "words-guess" }, bar, text, share);
}
