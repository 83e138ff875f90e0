import { formatShare } from "./numbers.js";

const LABEL_HEIGHT = 13;
const LABEL_GAP = 8; // between the middle of a point and its label
const POINT_RADIUS = 5;
const LETTER_WIDTH = 7;
const FIRST_WIDE = 0x2e80; // where the scripts of East Asia begin
const LABEL_SIDES = [
  { x: LABEL_GAP, y: 4, anchor: "start" },
  { x: -LABEL_GAP, y: 4, anchor: "end" },
  { x: 0, y: -LABEL_GAP - 2, anchor: "middle" },
  { x: 0, y: LABEL_GAP + 10, anchor: "middle" },
];

/**
 * Where points of a plane lie in a drawing: both axes have the same scale, so that distances are
 * true, and the points fill what they can of it.
 *
 * @param {Array<number[]|null>} points x to the right, y upwards; null for one that isn't shown.
 * @param {{width: number, height: number, margin: number}} size of the drawing.
 * @returns {Array<number[]|null>} x to the right, y downwards.
 */
export function fitPoints(points, { width, height, margin }) {
  const shown = points.filter((point) => point !== null);
  const [left, right] = extent(shown.map(([x]) => x));
  const [low, high] = extent(shown.map(([, y]) => y));
  const scale = Math.min(
    right > left ? (width - 2 * margin) / (right - left) : Infinity,
    high > low ? (height - 2 * margin) / (high - low) : Infinity,
  );
  const factor = Number.isFinite(scale) ? scale : 0;
  return points.map((point) =>
    point === null
      ? null
      : [
          width / 2 + (point[0] - (left + right) / 2) * factor,
          height / 2 - (point[1] - (low + high) / 2) * factor,
        ],
  );
}

function extent(values) {
  return [
    values.reduce((least, value) => Math.min(least, value), Infinity),
    values.reduce((most, value) => Math.max(most, value), -Infinity),
  ];
}

/**
 * Where the labels of points stand: beside them, above or below, where there is room. A label that
 * would lie on another one, or on a point, is left out; the first points come first.
 *
 * @param {Array<number[]|null>} places of the points in the drawing.
 * @param {number[]} widths of the labels.
 * @param {{width: number, height: number}} size of the drawing.
 * @returns {Array<{x: number, y: number, anchor: string}|null>} relative to the points.
 */
export function placeLabels(places, widths, size) {
  const taken = places.filter((place) => place !== null).map(pointBox);
  return places.map((place, index) => {
    if (place === null) {
      return null;
    }
    const own = pointBox(place);
    for (const label of LABEL_SIDES) {
      const box = labelBox(place, label, widths[index]);
      if (isInside(box, size) && !taken.some((other) => overlaps(box, other, own))) {
        taken.push(box);
        return label;
      }
    }
    return null;
  });
}

function pointBox([x, y]) {
  return [x - POINT_RADIUS, y - POINT_RADIUS, x + POINT_RADIUS, y + POINT_RADIUS];
}

function labelBox([x, y], label, width) {
  const start = { start: 0, middle: width / 2, end: width }[label.anchor];
  const left = x + label.x - start;
  const bottom = y + label.y + 3;
  return [left, bottom - LABEL_HEIGHT, left + width, bottom];
}

function isInside([left, top, right, bottom], { width, height }) {
  return left >= 0 && top >= 0 && right <= width && bottom <= height;
}

/** Whether a label lies on another thing, its own point and those in the same place aside. */
function overlaps(box, other, own) {
  const isOwn = other.every((side, index) => Math.abs(side - own[index]) < 1);
  return (
    !isOwn && box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]
  );
}

/**
 * About how wide a text is.
 *
 * @param {string} text
 * @returns {number} in units of the drawing.
 */
export function labelWidth(text) {
  const columns = [...text].map((letter) => (letter.codePointAt(0) >= FIRST_WIDE ? 2 : 1));
  return columns.reduce((sum, count) => sum + count, 0) * LETTER_WIDTH;
}

/**
 * Between two places.
 *
 * @param {number[]} from
 * @param {number[]} to
 * @param {number} share 0 is the first, 1 the second; slower at both ends.
 * @returns {number[]}
 */
export function between(from, to, share) {
  const eased = share * share * (3 - 2 * share);
  return to.map((side, index) => from[index] + (side - from[index]) * eased);
}

/**
 * Pairs of tokens that belong together: the pieces of one word one after the other, and the places
 * of the same token one after the other.
 *
 * @param {Array<{text: string, word: number, special: boolean}>} tokens of the page.
 * @returns {Array<{from: number, to: number, kind: string}>} kind is "pieces" or "same".
 */
export function linkTokens(tokens) {
  const links = [];
  const seen = new Map();
  tokens.forEach((token, index) => {
    if (token.special) {
      return;
    }
    if (index > 0 && tokens[index - 1].word === token.word) {
      links.push({ from: index - 1, to: index, kind: "pieces" });
    }
    if (seen.has(token.text)) {
      links.push({ from: seen.get(token.text), to: index, kind: "same" });
    }
    seen.set(token.text, index);
  });
  return links;
}

/**
 * How much of the variance a plane shows, in words.
 *
 * @param {number[]} shares of both axes, from 0 to 1.
 * @param {number} count of points.
 * @returns {string}
 */
export function tellShares([first, second], count) {
  if (count < 2) {
    return "There is one point, and nothing to compare it with.";
  }
  if (first === 0) {
    return "All vectors are equal here, so their points lie in one place.";
  }
  return `This picture shows ${formatShare(first + second)} of the variance of the vectors: `
    + `${formatShare(first)} horizontally, ${formatShare(second)} vertically.`;
}
