import { color } from "./color.js";
import { element } from "./dom.js";
import { drawSquares } from "./thumbnails.js";

/** The side of an enlarged square, and the room for names beside it, in CSS pixels. */
export const SQUARE = 420;
export const MARGIN = 96;

const MAX_LABELED = 42; // tokens; the names of more can't be read
const MAX_LETTERS = 12;
const MAX_FONT = 14;

/**
 * Draw a head's attention with the names of the tokens beside it.
 *
 * @param {HTMLCanvasElement} canvas gets MARGIN + SQUARE pixels on each side.
 * @param {Uint8Array} bytes of `Weights.head`.
 * @param {Object[]} tokens those that look, a row each.
 * @param {Object[]} others the key tokens, a column each.
 */
export function drawLabeled(canvas, bytes, tokens, others) {
  const side = MARGIN + SQUARE;
  canvas.width = side * devicePixelRatio;
  canvas.height = side * devicePixelRatio;
  const context = canvas.getContext("2d");
  context.scale(devicePixelRatio, devicePixelRatio);
  const squares = element("canvas");
  drawSquares(squares, bytes, others.length);
  context.imageSmoothingEnabled = bytes.length > SQUARE * SQUARE;
  context.drawImage(squares, MARGIN, MARGIN, SQUARE, SQUARE);
  context.fillStyle = color("text");
  context.textBaseline = "middle";
  eachName(context, tokens, (name, place) => {
    context.textAlign = "end";
    context.fillText(name, MARGIN - 6, place);
  });
  eachName(context, others, (name, place) => {
    context.save();
    context.translate(place, MARGIN - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = "start";
    context.fillText(name, 0, 0);
    context.restore();
  });
}

/** Write the names of tokens where they can be read. */
function eachName(context, tokens, write) {
  if (tokens.length > MAX_LABELED) {
    return;
  }
  const step = SQUARE / tokens.length;
  context.font = `${Math.min(MAX_FONT, 0.8 * step)}px system-ui, sans-serif`;
  tokens.forEach(({ text }, index) => write(shorten(text), MARGIN + (index + 0.5) * step));
}

function shorten(name) {
  const letters = [...name];
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join("")}…` : name;
}
