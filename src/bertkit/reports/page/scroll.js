import { element } from "./dom.js";

/**
 * A box that scrolls sideways, and fades at the side where its content goes on.
 *
 * @param {Node} content
 * @returns {HTMLElement}
 */
export function scrollBox(content) {
  const box = element("div", { class: "scroll" }, content);
  const show = () => {
    box.classList.toggle("goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  box.addEventListener("scroll", show);
  const observer = new ResizeObserver(show);
  [box, content].forEach((node) => observer.observe(node));
  return box;
}
