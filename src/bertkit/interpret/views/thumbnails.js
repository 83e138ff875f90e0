import { colour, mix, parseColour } from "./colour.js";

const MAX_SIDE = 96; // points of a small picture; those of longer texts are put together
const LINE_SIDE = 160;
const MIN_LINE = 0.1;

/**
 * Draw a head's attention as a small picture.
 *
 * @param {HTMLCanvasElement} canvas whose size on the page its style says.
 * @param {Uint8Array} bytes of `Weights.head`.
 * @param {string} style "squares" or "lines".
 */
export function drawThumbnail(canvas, bytes, style) {
  if (style === "lines") {
    drawThreads(canvas, bytes);
  } else {
    drawSquares(canvas, shrink(bytes, MAX_SIDE));
  }
}

/**
 * Draw a square of weights, a point for each.
 *
 * @param {HTMLCanvasElement} canvas gets as many points as there are weights.
 * @param {Uint8Array} bytes side × side bytes b, each of which is the weight (b / 255)².
 */
export function drawSquares(canvas, bytes) {
  const side = Math.sqrt(bytes.length);
  canvas.width = side;
  canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  const shades = Array.from({ length: 256 }, (_, byte) =>
    parseColour(mix(colour("panel"), colour("c0"), byte / 255)),
  );
  bytes.forEach((byte, index) => image.data.set([...shades[byte], 255], 4 * index));
  context.putImageData(image, 0, 0);
}

/**
 * A square of weights made smaller: each point is the largest of those that it stands for.
 *
 * @param {Uint8Array} bytes side × side.
 * @param {number} limit of the new side.
 * @returns {Uint8Array}
 */
export function shrink(bytes, limit) {
  const side = Math.sqrt(bytes.length);
  if (side <= limit) {
    return bytes;
  }
  const smaller = new Uint8Array(limit * limit);
  for (let row = 0; row < side; row += 1) {
    const start = Math.floor((row * limit) / side) * limit;
    for (let column = 0; column < side; column += 1) {
      const place = start + Math.floor((column * limit) / side);
      smaller[place] = Math.max(smaller[place], bytes[row * side + column]);
    }
  }
  return smaller;
}

function drawThreads(canvas, bytes) {
  const length = Math.sqrt(bytes.length);
  canvas.width = LINE_SIDE;
  canvas.height = LINE_SIDE;
  const context = canvas.getContext("2d");
  context.fillStyle = colour("panel");
  context.fillRect(0, 0, LINE_SIDE, LINE_SIDE);
  context.strokeStyle = colour("c0");
  context.lineWidth = 2;
  bytes.forEach((byte, index) => {
    const weight = (byte / 255) ** 2;
    if (weight >= MIN_LINE) {
      const [from, to] = [Math.floor(index / length), index % length];
      context.globalAlpha = weight;
      context.beginPath();
      context.moveTo(0, ((from + 0.5) * LINE_SIDE) / length);
      context.lineTo(LINE_SIDE, ((to + 0.5) * LINE_SIDE) / length);
      context.stroke();
    }
  });
}
