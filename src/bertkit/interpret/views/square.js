import { colour } from "./colour.js";
import { element } from "./dom.js";
import { drawSquares } from "./thumbnails.js";

/** The side of an enlarged square, and the room for names beside it, in CSS pixels. */
export const SQUARE = 420;
export const MARGIN = 96;

const MAX_LABELLED = 42; // tokens; the names of more can't be read
const MAX_LETTERS = 12;
const MAX_FONT = 14;

/**
 * Draw a head's attention with the names of the tokens beside it.
 *
 * @param {HTMLCanvasElement} canvas gets MARGIN + SQUARE pixels on each side.
 * @param {Uint8Array} bytes of `Weights.head`.
 * @param {Object[]} tokens of the page.
 */
export function drawLabelled(canvas, bytes, tokens) {
  const side = MARGIN + SQUARE;
  canvas.width = side * devicePixelRatio;
  canvas.height = side * devicePixelRatio;
  const context = canvas.getContext("2d");
  context.scale(devicePixelRatio, devicePixelRatio);
  const squares = element("canvas");
  drawSquares(squares, bytes);
  context.imageSmoothingEnabled = bytes.length > SQUARE * SQUARE;
  context.drawImage(squares, MARGIN, MARGIN, SQUARE, SQUARE);
  if (tokens.length <= MAX_LABELLED) {
    writeNames(context, tokens.map((token) => shorten(token.text)));
  }
}

function writeNames(context, names) {
  const step = SQUARE / names.length;
  context.fillStyle = colour("text");
  context.font = `${Math.min(MAX_FONT, 0.8 * step)}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  names.forEach((name, index) => {
    const place = MARGIN + (index + 0.5) * step;
    context.textAlign = "end";
    context.fillText(name, MARGIN - 6, place);
    context.save();
    context.translate(place, MARGIN - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = "start";
    context.fillText(name, 0, 0);
    context.restore();
  });
}

function shorten(name) {
  const letters = [...name];
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join("")}…` : name;
}
