import { color, mix, parseColor } from "./color.js";

const MAX_SIDE = 96; // points of a small picture; those of longer texts are put together
const LINE_SIDE = 160;
const MIN_LINE = 0.1;

/**
 * Draw a head's attention as a small picture.
 *
 * @param {HTMLCanvasElement} canvas whose size on the page its style says.
 * @param {Weights} weights of its layer.
 * @param {number} head from 1.
 * @param {string} style "squares" or "lines".
 */
export function drawThumbnail(canvas, weights, head, style) {
  if (style === "lines") {
    drawThreads(canvas, weights.head(head), weights.width);
  } else {
    drawSquares(canvas, ...shrink(weights.head(head), weights.width, MAX_SIDE));
  }
}

/**
 * Draw a grid of weights, a point for each.
 *
 * @param {HTMLCanvasElement} canvas gets as many points as there are weights.
 * @param {Uint8Array} bytes row by row, bytes b, each of which is the weight (b / 255)².
 * @param {number} width of a row.
 */
export function drawSquares(canvas, bytes, width) {
  const height = bytes.length / width;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const shades = Array.from({ length: 256 }, (_, byte) =>
    parseColor(mix(color("panel"), color("c0"), byte / 255)),
  );
  bytes.forEach((byte, index) => image.data.set([...shades[byte], 255], 4 * index));
  context.putImageData(image, 0, 0);
}

/**
 * A grid of weights made smaller: each point is the largest of those that it stands for.
 *
 * @param {Uint8Array} bytes row by row.
 * @param {number} width of a row.
 * @param {number} limit of the new width and height.
 * @returns {Array} the bytes, and the width of their rows.
 */
export function shrink(bytes, width, limit) {
  const height = bytes.length / width;
  const [numRows, numColumns] = [Math.min(height, limit), Math.min(width, limit)];
  if (numRows === height && numColumns === width) {
    return [bytes, width];
  }
  const smaller = new Uint8Array(numRows * numColumns);
  for (let row = 0; row < height; row += 1) {
    const start = Math.floor((row * numRows) / height) * numColumns;
    for (let column = 0; column < width; column += 1) {
      const place = start + Math.floor((column * numColumns) / width);
      smaller[place] = Math.max(smaller[place], bytes[row * width + column]);
    }
  }
  return [smaller, numColumns];
}

function drawThreads(canvas, bytes, width) {
  const height = bytes.length / width;
  canvas.width = LINE_SIDE;
  canvas.height = LINE_SIDE;
  const context = canvas.getContext("2d");
  context.fillStyle = color("panel");
  context.fillRect(0, 0, LINE_SIDE, LINE_SIDE);
  context.strokeStyle = color("c0");
  context.lineWidth = 2;
  bytes.forEach((byte, index) => {
    const weight = (byte / 255) ** 2;
    if (weight >= MIN_LINE) {
      const [from, to] = [Math.floor(index / width), index % width];
      context.globalAlpha = weight;
      context.beginPath();
      context.moveTo(0, ((from + 0.5) * LINE_SIDE) / height);
      context.lineTo(LINE_SIDE, ((to + 0.5) * LINE_SIDE) / width);
      context.stroke();
    }
  });
}
