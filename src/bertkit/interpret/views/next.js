import { element } from "./dom.js";
import { rove } from "./keys.js";
import { formatShare } from "./numbers.js";
import { buildGuess, buildHead } from "./words.js";

/** The words that a model expects behind each token. */
export const view = {
  name: "next",
  controls: [],
  mount(root, page) {
    const words = new NextWords(page);
    root.append(...words.build());
    page.subscribe(() => words.mark());
    words.mark();
  },
};

class NextWords {
  constructor(page) {
    this.page = page;
    this.steps = page.data.steps;
    this.buttons = this.steps.map((step) => this.buildToken(step.token));
    this.rows = this.steps.map((step, index) => buildRow(step, this.buttons[index]));
  }

  build() {
    const digits = { maximumSignificantDigits: 3 };
    const perplexity = this.page.data.perplexity.toLocaleString("en", digits);
    const body = element("tbody", {}, this.rows);
    const head = buildHead(["Behind", "Comes next"], this.steps[0].words.length);
    const release = ({ key }) => key === "Escape" && this.page.set({ token: null });
    const about = { class: "words-table next-table", onkeydown: release };
    const table = element("table", about, head, body);
    rove(body, this.buttons);
    return [
      element("p", { class: "quiet" }, `Perplexity of this text: ${perplexity}.`),
      element("div", { class: "scroll" }, table),
    ];
  }

  buildToken(token) {
    const toggle = () => this.page.set({ token: this.page.state.token === token ? null : token });
    return element(
      "button", { type: "button", class: "words-token", onclick: toggle },
      this.page.tokens[token].text,
    );
  }

  /** Mark the row of the token that is chosen on the page, and bring it into sight. */
  mark() {
    this.steps.forEach(({ token }, index) => {
      const isChosen = token === this.page.state.token;
      this.rows[index].classList.toggle("is-chosen", isChosen);
      this.buttons[index].setAttribute("aria-pressed", String(isChosen));
      if (isChosen) {
        this.rows[index].scrollIntoView({ block: "nearest" });
      }
    });
  }
}

function buildRow({ next, words, own: [share, rank] }, button) {
  return element(
    "tr", {},
    element("th", { scope: "row" }, button),
    element(
      "td", { class: "next-own" },
      element("span", { dir: "auto" }, next), " ",
      element("span", { class: "quiet" }, `${formatShare(share)}, rank ${rank}`),
    ),
    words.map(([word, probability]) => buildGuess(word, probability, word === next)),
  );
}
