import { forgetColors } from "./color.js";
import { element } from "./dom.js";

/** The theme that the browser prefers: "light" or "dark". */
export function preferredTheme() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * Show the theme of a state, and change it with the browser's preference and for printing.
 *
 * @param {State} state whose `theme` is "light" or "dark".
 */
export function followTheme(state) {
  state.subscribe((current, changed) => changed.includes("theme") && showTheme(current.theme));
  showTheme(state.current.theme);
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", () => state.set({ theme: preferredTheme() }));
  let before = null;
  addEventListener("beforeprint", () => {
    before = state.current.theme;
    state.set({ theme: "light" });
  });
  addEventListener("afterprint", () => state.set({ theme: before }));
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  forgetColors();
}

/**
 * A button that changes to the other theme.
 *
 * @param {State} state
 * @param {function(string)} setTheme
 * @returns {HTMLElement}
 */
export function themeButton(state, setTheme) {
  const change = () => setTheme(state.current.theme === "dark" ? "light" : "dark");
  const name = "light / dark";
  return element(
    "button",
    { type: "button", class: "chip theme", "aria-label": name, title: name, onclick: change },
    "◐",
  );
}
