const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element. Text is only ever a text node, never markup.
 *
 * @param {string} tag
 * @param {Object} attributes `onclick` and the like are functions; `style` is an object of
 *   properties, since the page's policy allows no style attributes; true is an attribute without a
 *   value; false, null and undefined are no attribute.
 * @param {...(Node|string|number|null|Array)} children elements or text; null is nothing.
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Make an SVG element; as `element`.
 *
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

/** A paragraph that says what went wrong. */
export function complaint(text) {
  return element("p", { class: "complaint", role: "alert" }, text);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    setAttribute(node, name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null).map(asNode));
  return node;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

function setAttribute(node, name, value) {
  if (typeof value === "function") {
    node.addEventListener(name.slice("on".length), value);
  } else if (name === "style") {
    for (const [property, setting] of Object.entries(value)) {
      node.style.setProperty(property, setting);
    }
  } else if (value === true) {
    node.setAttribute(name, "");
  } else if (value !== false && value !== null && value !== undefined) {
    node.setAttribute(name, value);
  }
}
