const NUM_HUES = 6;

let variables = new Map();

/**
 * Forget the colors that were read, because the theme is another now. The page calls this before
 * it tells the views, which draw again with the new ones.
 */
export function forgetColors() {
  variables = new Map();
}

/**
 * A color of the page, as drawing on a canvas needs it.
 *
 * @param {string} name as in the style sheet without the hyphens: "text", "quiet", "rule",
 *   "panel", "page", "c0" to "c5".
 * @returns {string} such as "#0067a5".
 */
export function color(name) {
  if (!variables.has(name)) {
    const style = getComputedStyle(document.documentElement);
    variables.set(name, style.getPropertyValue(`--${name}`).trim());
  }
  return variables.get(name);
}

/**
 * The color of a head, the same in all views. The first six have the page's own colors, the next
 * six those made paler, the next stronger, and then they come again; so a head's number should
 * stand beside its color.
 *
 * @param {number} head from 1.
 * @returns {string}
 */
export function headColor(head) {
  const hue = color(`c${(head - 1) % NUM_HUES}`);
  const round = Math.floor((head - 1) / NUM_HUES) % 3;
  return round === 0 ? hue : mix(hue, color(round === 1 ? "page" : "text"), 0.4);
}

/**
 * The color of a number that may be negative: blue is positive, orange negative, and the further
 * from the page's own color, the larger.
 *
 * @param {number} value
 * @param {number} limit the size that has the full color; larger ones have it too.
 * @returns {string}
 */
export function diverging(value, limit) {
  const share = limit > 0 ? Math.min(1, Math.abs(value) / limit) : 0;
  return mix(color("page"), color(value < 0 ? "c1" : "c0"), share);
}

/**
 * The color of a share: the page's own for 0, blue for 1.
 *
 * @param {number} share from 0 to 1.
 * @returns {string}
 */
export function sequential(share) {
  return mix(color("page"), color("c0"), Math.max(0, Math.min(1, share)));
}

/**
 * The color of text that stands on another color: whichever of the page's own two is clearer.
 *
 * @param {string} ground such as "#0067a5".
 * @returns {string}
 */
export function inkOn(ground) {
  const [page, text] = [color("page"), color("text")];
  return contrast(ground, page) >= contrast(ground, text) ? page : text;
}

/**
 * How clearly two colors differ: from 1, not at all, to 21, black on white.
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
  const [red, green, blue] = parseColor(text).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * A color between two.
 *
 * @param {string} from such as "#0067a5".
 * @param {string} to
 * @param {number} share 0 is the first, 1 the second.
 * @returns {string} such as "#0067a5".
 */
export function mix(from, to, share) {
  const [first, second] = [parseColor(from), parseColor(to)];
  const mixed = first.map((part, index) => Math.round(part + (second[index] - part) * share));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Red, green and blue of a color.
 *
 * @param {string} text such as "#0067a5".
 * @returns {number[]} three numbers from 0 to 255.
 */
export function parseColor(text) {
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  if (found === null) {
    throw new Error(`expected a color such as #0067a5, got ${text}`);
  }
  return found.slice(1).map((part) => Number.parseInt(part, 16));
}
