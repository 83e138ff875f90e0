import { element } from "./dom.js";
import { rove } from "./keys.js";

/**
 * Buttons in a row of which one is chosen; the arrow keys move between them.
 *
 * @param {string} label what is chosen, for those who see it and those who hear it.
 * @param {Array<{value: *, text: string, title: (string|undefined)}>} options
 * @param {function(*)} choose gets the value of the button that was clicked.
 * @returns {{root: HTMLElement, show: function(*)}} the row, and what marks a value as chosen.
 */
export function choiceChips(label, options, choose) {
  const chips = options.map((option) =>
    element(
      "button",
      { type: "button", class: "chip", title: option.title, onclick: () => choose(option.value) },
      option.text,
    ),
  );
  const show = (value) => {
    chips.forEach((chip, index) => {
      chip.setAttribute("aria-pressed", String(options[index].value === value));
    });
  };
  return { root: chipRow(label, chips), show };
}

/**
 * A row of buttons with a label before it, in which the arrow keys move.
 *
 * @param {string} label
 * @param {HTMLElement[]} chips
 * @param {...Node} others what stands behind them.
 * @returns {HTMLElement}
 */
export function chipRow(label, chips, ...others) {
  const row = element("div", { class: "chips", role: "group", "aria-label": label }, chips);
  rove(row, chips);
  const name = element("span", { class: "chips-label", "aria-hidden": "true" }, label);
  return element("div", { class: "chip-row" }, name, row, others);
}
