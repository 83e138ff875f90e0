import { element, svg } from "./dom.js";
import { stepIndex } from "./keys.js";
import { between, fitPoints, labelWidth, placeLabels } from "./plane_layout.js";
import { Zoom } from "./plane_zoom.js";

const LARGE = { width: 640, height: 440, margin: 46 };
const DURATION = 350; // milliseconds in which points move to the next layer
const ZOOM_STEP = 1.5;
const MANY_LINKS = 80; // with more, only those of the token in focus are drawn

/** Points on a plane, with names, that can be pointed at and kept, and move when they change. */
export class PlanePlot {
  /**
   * @param {string} label what is shown, for those who don't see it.
   * @param {Array<{text: string, name: string, hue: string}>} marks the text beside each point, its
   *   name for those who don't see it, and its color, such as "c0".
   * @param {Array<{from: number, to: number, kind: string}>} links lines between points.
   * @param {{point: function(number|null), keep: function(number|null)}} handlers are told which
   *   point is pointed at, by mouse or keys, and which is kept.
   * @param {{width: number, height: number, margin: number}} size of the drawing, whose letters are
   *   12 high.
   */
  constructor(label, marks, links, handlers, size = LARGE) {
    this.size = size;
    this.marks = marks;
    this.links = links;
    this.handlers = handlers;
    this.places = marks.map(() => null);
    this.widths = marks.map((mark) => labelWidth(mark.text));
    this.linkGroup = svg("g", { class: "plane-links" });
    this.rayGroup = svg("g", { class: "plane-rays" });
    this.groups = marks.map((mark, index) => this.buildMark(mark, index));
    this.lines = [];
    this.zoom = new Zoom(size);
    this.drawing = svg(
      "svg",
      {
        viewBox: `0 0 ${size.width} ${size.height}`, role: "group", "aria-label": label,
        onpointerdown: (event) => event.target === this.drawing && this.drag(event),
      },
      this.linkGroup, this.rayGroup, this.groups,
    );
    this.note = element("span", { class: "quiet" });
    this.root = element("div", { class: "plane" }, this.drawing, this.buildZoom());
    this.entered = null;
    this.focus = null;
    this.whole = this.places;
  }

  buildZoom() {
    const button = (text, label, onclick) =>
      element("button", { type: "button", class: "chip", "aria-label": label, onclick }, text);
    return element(
      "div", { class: "plane-zoom" },
      button("+", "larger", () => this.magnify(ZOOM_STEP)),
      button("−", "smaller", () => this.magnify(1 / ZOOM_STEP)),
      button("all", "see all", () => this.magnify(0)),
      this.note,
    );
  }

  buildMark({ text, name, hue }, index) {
    const circle = svg("circle", { r: 5, style: { fill: `var(--${hue})` } });
    const label = svg("text", {}, text);
    return svg(
      "g",
      {
        class: "plane-mark", role: "button", tabindex: "-1", "aria-label": name,
        "aria-pressed": "false",
        onpointerenter: (event) => event.pointerType !== "touch" && this.handlers.point(index),
        onpointerleave: () => this.handlers.point(null),
        onfocus: () => this.enter(index),
        onblur: () => this.handlers.point(null),
        onclick: () => this.handlers.keep(index),
        onkeydown: (event) => this.press(event, index),
      },
      svg("title", {}, name), circle, label,
    );
  }

  /**
   * Move the points to their places in another plane.
   *
   * @param {Array<number[]|null>} points null for one that isn't shown.
   */
  show(points) {
    this.whole = fitPoints(points, this.size);
    this.arrange();
  }

  /** Lay out what is seen, and go there. */
  arrange({ isStill = false } = {}) {
    const target = this.zoom.apply(this.whole);
    const labels = placeLabels(target, this.widths, this.size);
    this.groups.forEach((group, index) => showLabel(group, target[index], labels[index]));
    const shown = this.listShown(target);
    const nameless = shown.filter((index) => !labels[index] && this.zoom.sees(target[index]));
    const have = nameless.length === 1 ? "name has" : "names have";
    this.note.textContent = nameless.length === 0
      ? ""
      : `${nameless.length} ${have} no room: point at the dot to read it, or zoom in.`;
    this.enterable(shown.includes(this.entered) ? this.entered : shown[0]);
    this.move(target, isStill);
  }

  /** Zoom around the point in focus, or else around the middle. */
  magnify(factor) {
    this.zoom.by(factor, this.focus === null ? null : this.whole[this.focus]);
    this.arrange();
  }

  /** Let the pointer take the drawing with it. */
  drag(event) {
    const scale = this.size.width / this.drawing.getBoundingClientRect().width;
    const follow = ({ movementX, movementY }) => {
      this.zoom.move(movementX * scale, movementY * scale);
      this.arrange({ isStill: true });
    };
    const stop = () => {
      this.drawing.removeEventListener("pointermove", follow);
      this.drawing.removeEventListener("lostpointercapture", stop);
    };
    this.drawing.addEventListener("pointermove", follow);
    this.drawing.addEventListener("lostpointercapture", stop);
    this.drawing.setPointerCapture(event.pointerId);
  }

  /**
   * Set points off from the others.
   *
   * @param {number|null} focus the one that is attended to.
   * @param {number[]} others those that belong to it, each joined with it by a line.
   * @param {number|null} kept the one that was kept.
   */
  highlight(focus, others, kept) {
    this.focus = focus;
    const bright = new Set(focus === null ? [] : [focus, ...others]);
    this.groups.forEach((group, index) => {
      group.classList.toggle("faded", focus !== null && !bright.has(index));
      group.classList.toggle("bright", bright.has(index));
      group.setAttribute("aria-pressed", String(index === kept));
    });
    const rays = focus === null ? [] : others.map((to) => ({ from: focus, to, kind: "ray" }));
    const links = this.links.filter(
      ({ from, to }) => this.links.length <= MANY_LINKS || from === focus || to === focus,
    );
    this.lines = [...this.fill(this.rayGroup, rays), ...this.fill(this.linkGroup, links)];
    this.draw(this.places);
  }

  fill(group, links) {
    const lines = links.map((link) => ({ ...link, line: svg("line", { class: link.kind }) }));
    group.replaceChildren(...lines.map(({ line }) => line));
    return lines;
  }

  /** Let the points go to their places, at once where the reader wants no motion. */
  move(target, isStill) {
    cancelAnimationFrame(this.frame);
    const before = this.places;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const isAtOnce = isStill || isCalm || !before.some(Boolean);
    const start = performance.now();
    const step = (now) => {
      const share = isAtOnce ? 1 : Math.min(1, Math.max(0, now - start) / DURATION);
      const places = target.map((to, index) => to && between(before[index] ?? to, to, share));
      this.draw(places);
      if (share < 1) {
        this.frame = requestAnimationFrame(step);
      }
    };
    step(start);
  }

  draw(places) {
    this.places = places;
    this.groups.forEach((group, index) => {
      if (places[index] !== null) {
        group.setAttribute("transform", `translate(${places[index].map(rounded).join(" ")})`);
      }
    });
    for (const { from, to, line } of this.lines) {
      line.classList.toggle("absent", places[from] === null || places[to] === null);
      if (places[from] !== null && places[to] !== null) {
        const [x1, y1, x2, y2] = [...places[from], ...places[to]].map(rounded);
        Object.entries({ x1, y1, x2, y2 }).forEach(([name, side]) => line.setAttribute(name, side));
      }
    }
  }

  listShown(places) {
    return this.marks.map((_, index) => index).filter((index) => places[index] !== null);
  }

  /** Make one point the one that Tab leads to. */
  enterable(index) {
    this.entered = index;
    this.groups.forEach((group, other) => group.setAttribute("tabindex", other === index ? 0 : -1));
  }

  enter(index) {
    this.enterable(index);
    if (!this.zoom.sees(this.zoom.apply(this.whole)[index])) {
      this.zoom.by(1, this.whole[index]);
      this.arrange();
    }
    this.handlers.point(index);
  }

  press(event, index) {
    const shown = this.listShown(this.places);
    const next = stepIndex(event.key, shown.indexOf(index), shown.length);
    if (next !== null) {
      this.groups[shown[next]].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.handlers.keep(index);
    } else if (event.key === "Escape") {
      this.handlers.keep(null);
    } else {
      return;
    }
    event.preventDefault();
  }
}

function showLabel(group, place, label) {
  group.classList.toggle("absent", place === null);
  group.classList.toggle("unnamed", label === null);
  const { x, y, anchor } = label ?? { x: 8, y: 4, anchor: "start" };
  const text = group.querySelector("text");
  text.setAttribute("x", x);
  text.setAttribute("y", y);
  text.setAttribute("text-anchor", anchor);
}

function rounded(number) {
  return Math.round(number * 10) / 10;
}
