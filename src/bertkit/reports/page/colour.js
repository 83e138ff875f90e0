const NUM_HUES = 6;

let variables = new Map();

/**
 * Forget the colours that were read, because the theme is another now. The page calls this before
 * it tells the views, which draw again with the new ones.
 */
export function forgetColours() {
  variables = new Map();
}

/**
 * A colour of the page, as drawing on a canvas needs it.
 *
 * @param {string} name as in the style sheet without the hyphens: "text", "quiet", "rule",
 *   "panel", "page", "c0" to "c5".
 * @returns {string} such as "#0067a5".
 */
export function colour(name) {
  if (!variables.has(name)) {
    const style = getComputedStyle(document.documentElement);
    variables.set(name, style.getPropertyValue(`--${name}`).trim());
  }
  return variables.get(name);
}

/**
 * The colour of a head, the same in all views. The first six have the page's own colours, the next
 * six those made paler, the next stronger, and then they come again; so a head's number should
 * stand beside its colour.
 *
 * @param {number} head from 1.
 * @returns {string}
 */
export function headColour(head) {
  const hue = colour(`c${(head - 1) % NUM_HUES}`);
  const round = Math.floor((head - 1) / NUM_HUES) % 3;
  return round === 0 ? hue : mix(hue, colour(round === 1 ? "page" : "text"), 0.4);
}

/**
 * The colour of a number that may be negative: blue is positive, orange negative, and the further
 * from the page's own colour, the larger.
 *
 * @param {number} value
 * @param {number} limit the size that has the full colour; larger ones have it too.
 * @returns {string}
 */
export function diverging(value, limit) {
  const share = limit > 0 ? Math.min(1, Math.abs(value) / limit) : 0;
  return mix(colour("page"), colour(value < 0 ? "c1" : "c0"), share);
}

/**
 * The colour of a share: the page's own for 0, blue for 1.
 *
 * @param {number} share from 0 to 1.
 * @returns {string}
 */
export function sequential(share) {
  return mix(colour("page"), colour("c0"), Math.max(0, Math.min(1, share)));
}

/**
 * The colour of text that stands on another colour: whichever of the page's own two is clearer.
 *
 * @param {string} ground such as "#0067a5".
 * @returns {string}
 */
export function inkOn(ground) {
  const [page, text] = [colour("page"), colour("text")];
  return contrast(ground, page) >= contrast(ground, text) ? page : text;
}

/**
 * How clearly two colours differ: from 1, not at all, to 21, black on white.
 *
 * Source: Web Content Accessibility Guidelines 2.2, "contrast ratio".
 *
 * @param {string} first such as "#0067a5".
 * @param {string} second
 * @returns {number}
 */
export function contrast(first, second) {
  const [one, other] = [luminance(first), luminance(second)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

function luminance(text) {
  const [red, green, blue] = parseColour(text).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * A colour between two.
 *
 * @param {string} from such as "#0067a5".
 * @param {string} to
 * @param {number} share 0 is the first, 1 the second.
 * @returns {string} such as "#0067a5".
 */
export function mix(from, to, share) {
  const [first, second] = [parseColour(from), parseColour(to)];
  const mixed = first.map((part, index) => Math.round(part + (second[index] - part) * share));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Red, green and blue of a colour.
 *
 * @param {string} text such as "#0067a5".
 * @returns {number[]} three numbers from 0 to 255.
 */
export function parseColour(text) {
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  if (found === null) {
    throw new Error(`expected a colour such as #0067a5, got ${text}`);
  }
  return found.slice(1).map((part) => Number.parseInt(part, 16));
}
