const MOST = 30;

/** Which part of a drawing is seen, and how large. */
export class Zoom {
  /**
   * @param {{width: number, height: number}} size of the drawing.
   */
  constructor(size) {
    this.size = size;
    this.reset();
  }

  /** See all of it. */
  reset() {
    this.factor = 1;
    this.middle = [this.size.width / 2, this.size.height / 2];
  }

  /**
   * Where places of the whole drawing are seen.
   *
   * @param {Array<number[]|null>} places
   * @returns {Array<number[]|null>}
   */
  apply(places) {
    const { width, height } = this.size;
    return places.map((place) =>
      place === null
        ? null
        : [
            width / 2 + (place[0] - this.middle[0]) * this.factor,
            height / 2 + (place[1] - this.middle[1]) * this.factor,
          ],
    );
  }

  /**
   * See it larger or smaller, and a place in the middle.
   *
   * @param {number} factor above 1 is larger.
   * @param {number[]|null} about a place of the whole drawing; null keeps the middle.
   */
  by(factor, about) {
    const wanted = this.factor * factor;
    if (wanted <= 1.01) {
      this.reset();
      return;
    }
    this.factor = Math.min(wanted, MOST);
    this.middle = about ?? this.middle;
  }

  /**
   * Move what is seen.
   *
   * @param {number} across to the right, in units of the drawing.
   * @param {number} down
   */
  move(across, down) {
    if (this.factor > 1) {
      this.middle = [
        this.middle[0] - across / this.factor,
        this.middle[1] - down / this.factor,
      ];
    }
  }

  /**
   * Whether a place is seen.
   *
   * @param {number[]} place as `apply` gave it.
   * @returns {boolean}
   */
  sees([x, y]) {
    return x >= 0 && y >= 0 && x <= this.size.width && y <= this.size.height;
  }
}
