// A table of likely words: a row for each position, whose token can be chosen for all views.

import { element } from "./dom.js";
import { rove } from "./keys.js";
import { formatShare } from "./numbers.js";
import { scrollBox } from "./scroll.js";

/** Base of tables of likely words; subclasses say by `buildOwn` what their second column holds. */
export class WordTable {
  constructor(page, names, style) {
    this.page = page;
    this.names = names;
    const release = ({ key }) => key === "Escape" && page.set({ token: null });
    this.table = element("table", { class: `words-table ${style}`, onkeydown: release });
    this.scroll = scrollBox(this.table);
    page.subscribe(() => this.mark());
  }

  /** Show the words of these positions; the chosen token stays chosen. */
  fill(places) {
    const chosen = Math.max(0, places.findIndex(({ token }) => token === this.page.state.token));
    this.places = places;
    this.buttons = places.map(({ token }) => this.buildToken(token));
    this.rows = places.map((place, index) => this.buildRow(place, this.buttons[index]));
    const body = element("tbody", {}, this.rows);
    this.table.replaceChildren(buildHead(this.names, places[0].words.length), body);
    rove(body, this.buttons, 1, chosen);
    this.mark();
  }

  buildToken(token) {
    const toggle = () => this.page.set({ token: this.page.state.token === token ? null : token });
    return element(
      "button", { type: "button", class: "words-token", onclick: toggle },
      this.page.tokens[token].text,
    );
  }

  buildRow(place, button) {
    const { text, cell, style } = this.buildOwn(place);
    return element(
      "tr", { class: style },
      element("th", { scope: "row" }, button),
      cell,
      place.words.map(([word, probability]) => buildGuess(word, probability, word === text)),
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

function buildHead(names, numWords) {
  const ranks = ["Most likely", "2nd", "3rd", "4th", "5th"].slice(0, numWords);
  const cells = [...names, ...ranks].map((name) => element("th", { scope: "col" }, name));
  return element("thead", {}, element("tr", {}, cells));
}

/** A likely word with its probability as a bar and in words. */
function buildGuess(word, probability, isOwn) {
  const bar = element("span", {
    class: "words-bar", "aria-hidden": "true", style: { "inline-size": `${100 * probability}%` },
  });
  const share = element("span", { class: "words-share" }, formatShare(probability));
  const text = element("span", { class: "words-word" }, word);
  return element("td", { class: isOwn ? "words-guess is-own" : "words-guess" }, bar, text, share);
}
