const SHARES = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

/**
 * The bytes of an array of the page, unpacked. This takes a moment where they are many.
 *
 * @param {string} name as Python named it.
 * @returns {Promise<Uint8Array|null>} null where the page has no such array.
 */
export async function readBytes(name) {
  const holder = document.getElementById(`array-${name}`);
  return holder === null ? null : inflate(decodeBase64(holder.textContent));
}

/**
 * Unpack what zlib packed.
 *
 * @param {Uint8Array} packed
 * @returns {Promise<Uint8Array>}
 */
export async function inflate(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Bytes from base64.
 *
 * @param {string} text
 * @returns {Uint8Array}
 */
export function decodeBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let index = 0; index < bytes.length; index += 1) {
    bytes[index] = characters.charCodeAt(index);
  }
  return bytes;
}

/**
 * The attention weights of one layer: for each head, how much each token attends to each other. A
 * weight is stored as a byte b and is (b / 255)², or with a residual r ((b + r / 254) / 255)².
 */
export class Weights {
  /**
   * @param {Uint8Array} bytes head by head, in each a row for each token that looks.
   * @param {number} length tokens that look.
   * @param {number} width number of key tokens; equal in self-attention.
   * @param {Uint8Array|null} residuals the bits of int8, as many as bytes; null of long texts.
   */
  constructor(bytes, length, width = length, residuals = null) {
    this.bytes = bytes;
    this.residuals = residuals && new Int8Array(residuals.buffer, residuals.byteOffset);
    this.length = length;
    this.width = width;
  }

  /**
   * Where one token looks: a share for each token it sees, together 1 but for rounding.
   *
   * @param {number} head from 1.
   * @param {number} token from 0, the one that looks.
   * @returns {Float32Array}
   */
  row(head, token) {
    return Float32Array.from({ length: this.width }, (_, other) => this.at(head, token, other));
  }

  /**
   * How much one token attends to another.
   *
   * @param {number} head from 1.
   * @param {number} token from 0, the one that looks.
   * @param {number} other from 0, the one that is attended to.
   * @returns {number} from 0 to 1.
   */
  at(head, token, other) {
    const index = ((head - 1) * this.length + token) * this.width + other;
    const byte = this.bytes[index];
    return this.residuals ? ((byte + this.residuals[index] / 254) / 255) ** 2 : SHARES[byte];
  }

  /**
   * All weights of a head as they are stored, for drawing many of them.
   *
   * @param {number} head from 1.
   * @returns {Uint8Array} length × width bytes b, each of which is the weight (b / 255)².
   */
  head(head) {
    const size = this.length * this.width;
    return this.bytes.subarray((head - 1) * size, head * size);
  }
}

/**
 * Query, key and value of each token in the heads of one layer, rounded: each head has 65,535
 * steps between its largest number and the same below zero.
 */
export class Vectors {
  /**
   * @param {Uint8Array} bytes the bits of int16: query, key, value; in each head by head, in each
   *   head token by token.
   * @param {number[][]} scales for query, key and value the size of a step of each head.
   * @param {number} length tokens that look, which have queries.
   * @param {number} width number of key tokens, which have keys and values.
   */
  constructor(bytes, scales, length, width = length) {
    this.steps = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
    this.scales = scales;
    this.lengths = [length, width, width];
    this.features = this.steps.length / (scales[0].length * (length + 2 * width));
  }

  /**
   * What a token looks for.
   *
   * @param {number} head from 1.
   * @param {number} token from 0.
   * @returns {Float32Array} a number for each feature.
   */
  query(head, token) {
    return this.part(0, head, token);
  }

  /** What a token can be found by; as `query`. */
  key(head, token) {
    return this.part(1, head, token);
  }

  /** What a token gives to those that look at it; as `query`. */
  value(head, token) {
    return this.part(2, head, token);
  }

  part(number, head, token) {
    const scale = this.scales[number][head - 1];
    const numHeads = this.scales[number].length;
    const before = this.lengths.slice(0, number).reduce((sum, length) => sum + length, 0);
    const row = numHeads * before + (head - 1) * this.lengths[number] + token;
    const start = row * this.features;
    return Float32Array.from(
      this.steps.subarray(start, start + this.features),
      (step) => step * scale,
    );
  }
}
