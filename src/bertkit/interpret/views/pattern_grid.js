import { choiceChips } from "./chips.js";
import { element } from "./dom.js";
import { rove } from "./keys.js";
import { formatShare } from "./numbers.js";
import { scrollBox } from "./scroll.js";

const HUES = {
  next: "c0", previous: "c2", itself: "c3", "[CLS]": "c4", "[SEP]": "c1", "same word": "c5",
  "<s>": "c4", "</s>": "c1",
};
const OTHER_HUE = "quiet";
const NAMED_SHADE = 0.4; // of a pattern that has no share
const BROAD = "broad";
const ALL = "all patterns";
const ENTROPY = "entropy";

/**
 * Color and words of a cell that shows a pattern.
 *
 * @param {{name: string, shares: Object<string, number>}} pattern of the head.
 * @param {string} shown the pattern that is chosen, or `ALL`.
 * @returns {{hue: string, shade: number, lines: string[]}} a color of the page, how much of it
 *   from 0 to 1, and the words.
 */
export function describePattern({ name, shares }, shown) {
  const place = shown in shares ? shown : name;
  const hue = HUES[place] ?? OTHER_HUE;
  if (place in shares) {
    const share = `${Math.round(100 * shares[place])} %`;
    const lines = shown === place ? [share, name] : [name, share];
    return { hue, shade: shown === ALL || shown === place ? shares[place] : 0, lines };
  }
  const isShown = shown === name || (shown === ALL && name === BROAD);
  return { hue, shade: isShown ? NAMED_SHADE : 0, lines: [name] };
}

/**
 * Color and words of a cell that shows an entropy.
 *
 * @param {number} entropy in nats.
 * @param {number} most the entropy of uniform attention.
 * @returns {{hue: string, shade: number, lines: string[]}} as of `describePattern`.
 */
export function describeEntropy(entropy, most) {
  const lines = [entropy.toFixed(2), `as ${Math.exp(entropy).toFixed(1)}`];
  return { hue: "c0", shade: most > 0 ? entropy / most : 0, lines };
}

/**
 * The most entropy that there can be.
 *
 * @param {Page} page
 * @param {number|null} token whose entropy it is; null for the mean of all.
 * @returns {number} in nats.
 */
export function findMostEntropy({ numAllowed }, token) {
  const seen = numAllowed.map(Math.log);
  return token === null ? seen.reduce((sum, each) => sum + each, 0) / seen.length : seen[token];
}

/** What each head of each layer does: a row for each layer, a column for each head. */
export class PatternGrid {
  /**
   * @param {Page} page with `data.entropy` [layer − 1][head − 1][token].
   * @param {function(number, number)} open gets layer and head of the cell that is clicked.
   */
  constructor(page, open) {
    this.page = page;
    this.shown = ALL;
    this.token = null;
    const names = [...Object.keys(page.patterns[0][0].shares), BROAD, "mixed"];
    const options = [ALL, ...names, ENTROPY].map((name) => ({ value: name, text: name }));
    this.chips = choiceChips("Show", options, (name) => this.choose(name));
    this.note = element("p", { class: "quiet", role: "status" });
    this.cells = page.patterns.flatMap((heads, index) =>
      heads.map((pattern, place) => buildCell(pattern, index + 1, place + 1, open)));
    const table = this.buildTable();
    rove(table, this.cells.map((cell) => cell.button), page.model.heads);
    this.root = element("div", {}, this.chips.root, this.note,
      scrollBox(table));
    this.chips.show(this.shown);
  }

  buildTable() {
    const { layers, heads } = this.page.model;
    const corner = element("th", { scope: "col" }, "layer");
    const titles = Array.from({ length: heads }, (_, index) =>
      element("th", { scope: "col" }, index === 0 ? "head 1" : index + 1));
    const rows = Array.from({ length: layers }, (_, index) => {
      const cells = this.cells.slice(index * heads, (index + 1) * heads);
      return element("tr", {},
        element("th", { scope: "row" }, index + 1),
        cells.map(({ button }) => element("td", {}, button)));
    });
    return element("table", { class: "pattern-grid" },
      element("thead", {}, element("tr", {}, corner, titles)), element("tbody", {}, rows));
  }

  choose(name) {
    this.shown = name;
    this.chips.show(name);
    this.draw(this.token);
  }

  /**
   * Draw what is chosen.
   *
   * @param {number|null} token whose entropies are shown; null for the mean of all.
   */
  draw(token) {
    this.token = token;
    const { state, without } = this.page;
    const most = findMostEntropy(this.page, token);
    for (const { button, pattern, layer, head } of this.cells) {
      const entropy = this.entropyOf(pattern, layer, head);
      const { hue, shade, lines } = this.shown === ENTROPY
        ? describeEntropy(entropy, most)
        : describePattern(pattern, this.shown);
      const isOff = without.includes(`${layer}.${head}`);
      button.replaceChildren(...lines.map((line) => element("span", {}, line)));
      button.style.setProperty("--hue", `var(--${hue})`);
      button.style.setProperty("--shade", shade.toFixed(3));
      button.classList.toggle("named", pattern.name === this.shown);
      button.classList.toggle("off", isOff);
      button.title = tell(pattern, layer, head, isOff);
      button.setAttribute("aria-current", String(layer === state.layer && head === state.head));
    }
    this.note.textContent = this.count();
  }

  entropyOf(pattern, layer, head) {
    const own = this.page.data.entropy[layer - 1][head - 1];
    return this.token === null ? pattern.entropy : own[this.token];
  }

  count() {
    const { shown, cells, token, page } = this;
    if (shown === ALL) {
      return "What each head attends to most, and with what share of its attention.";
    }
    if (shown === ENTROPY) {
      const whose = token === null ? "the mean of all tokens" : `“${page.tokens[token].text}”`;
      return `The entropy of ${whose}; below it, the number of tokens that have it under uniform`
        + " attention.";
    }
    const number = cells.filter(({ pattern }) => pattern.name === shown).length;
    const all = shown in page.patterns[0][0].shares ? " The share of every head is shown." : "";
    return `${number} of ${cells.length} heads have the pattern “${shown}” on this text.${all}`;
  }
}

function buildCell(pattern, layer, head, open) {
  const onclick = () => open(layer, head);
  const button = element("button", { type: "button", onclick });
  return { button, pattern, layer, head };
}

function tell(pattern, layer, head, isOff) {
  const shares = Object.entries(pattern.shares).map(([name, share]) =>
    `${name} ${formatShare(share)}`);
  const off = isOff ? " (switched off)" : "";
  return `Head ${layer}.${head}${off}: ${pattern.name}; entropy ${pattern.entropy.toFixed(2)}; `
    + shares.join(", ");
}
