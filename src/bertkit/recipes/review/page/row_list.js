import { element } from "./dom.js";

const HEIGHT = 32; // pixels of a row, as in page.css
const NUM_OUTSIDE = 8; // rows drawn above and below those in sight

/** All rows in a box that scrolls; only those in sight are in the document. */
export class RowList {
  /** `describe` gives the nodes of a row, by its index; `choose` is called when it is clicked. */
  constructor(count, describe, choose) {
    Object.assign(this, { count, describe, choose });
    const style = { height: `${count * HEIGHT}px` };
    this.space = element("div", { role: "presentation", style });
    this.root = element("div", { class: "list", role: "listbox", tabindex: 0,
      "aria-label": "Rows, the most suspicious first", onscroll: () => this.draw() }, this.space);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  show(current) {
    this.current = current;
    const { scrollTop, clientHeight } = this.root;
    const top = current * HEIGHT;
    if (top < scrollTop || top + HEIGHT > scrollTop + clientHeight) {
      this.root.scrollTop = top - clientHeight / 3;
    }
    this.draw();
    this.root.setAttribute("aria-activedescendant", `row-${current}`);
  }

  draw() {
    const { scrollTop, clientHeight } = this.root;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - NUM_OUTSIDE);
    const end = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / HEIGHT) + NUM_OUTSIDE);
    const indices = Array.from({ length: end - first }, (_, index) => first + index);
    this.space.replaceChildren(...indices.map((index) => element("div", {
      id: `row-${index}`, class: "list-row", role: "option", "aria-posinset": index + 1,
      "aria-setsize": this.count, "aria-selected": String(index === this.current),
      style: { top: `${index * HEIGHT}px` }, onclick: () => this.choose(index),
    }, this.describe(index))));
  }
}
