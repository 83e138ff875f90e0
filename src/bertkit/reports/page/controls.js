import { choiceChips, chipRow } from "./chips.js";
import { headColor, inkOn } from "./color.js";
import { element } from "./dom.js";
import { PAIRS, toggleHead } from "./state.js";

const MAKERS = { layer: layerControl, heads: headsControl, head: headControl, pairs: pairsControl };
const PAIR_TITLES = {
  all: "attention between all tokens",
  "A→A": "from the first text to itself",
  "A→B": "from the first text to the second",
  "B→A": "from the second text to the first",
  "B→B": "from the second text to itself",
};

/**
 * What chooses the layer, the heads and the texts, above every view.
 *
 * @param {Object} shared the page's data: {model, texts, without}.
 * @param {State} state is changed by them and shown in them.
 * @returns {Object<string, HTMLElement>} layer, heads, head and, for two texts, pairs.
 */
export function buildControls({ model, texts, without }, state) {
  const names = Object.keys(MAKERS).filter((name) => texts[1] !== null || name !== "pairs");
  return Object.fromEntries(
    names.map((name) => {
      const { root, show } = MAKERS[name](model, state, without);
      show(state.current);
      state.subscribe(show);
      return [name, root];
    }),
  );
}

function layerControl(model, state) {
  const options = count(model.layers).map((layer) => ({ value: layer, text: String(layer) }));
  const { root, show } = choiceChips("Layer", options, (layer) => state.set({ layer }));
  return { root, show: ({ layer }) => show(layer) };
}

function headControl(model, state) {
  const options = count(model.heads).map((head) => ({ value: head, text: String(head) }));
  const { root, show } = choiceChips("Head", options, (head) => state.set({ head }));
  return { root, show: ({ head }) => show(head) };
}

function pairsControl(_, state) {
  const options = PAIRS.map((pairs) => ({ value: pairs, text: pairs, title: PAIR_TITLES[pairs] }));
  const { root, show } = choiceChips("Texts", options, (pairs) => state.set({ pairs }));
  return { root, show: ({ pairs }) => show(pairs) };
}

function headsControl(model, state, without) {
  const heads = count(model.heads);
  const chips = heads.map((head) => headChip(head, state));
  const all = element(
    "button",
    { type: "button", class: "chip", onclick: () => state.set({ heads }) },
    "all",
  );
  const show = ({ layer, heads: chosen, head: focused }) => {
    chips.forEach((chip, index) => {
      const isOff = without.includes(`${layer}.${index + 1}`);
      chip.classList.toggle("off", isOff);
      chip.setAttribute("aria-label", `head ${index + 1}${isOff ? ", switched off" : ""}`);
      chip.setAttribute("aria-pressed", String(chosen.includes(index + 1)));
      chip.classList.toggle("focused", index + 1 === focused && chosen.length < model.heads);
      chip.style.setProperty("--color", headColor(index + 1));
      chip.style.setProperty("--ink", inkOn(headColor(index + 1)));
    });
  };
  return { root: chipRow("Heads", [...chips, all]), show };
}

function headChip(head, state) {
  const alone = () => state.set({ heads: [head], head });
  const toggle = () => {
    const heads = toggleHead(state.current.heads, head);
    state.set(heads.includes(head) ? { heads, head } : { heads });
  };
  return element(
    "button",
    {
      type: "button",
      class: "chip head-chip",
      title: "click to add or remove, double click or Shift+Enter to see this one alone",
      onclick: (event) => (event.shiftKey ? alone() : toggle()),
      ondblclick: alone,
    },
    String(head),
  );
}

function count(number) {
  return Array.from({ length: number }, (_, index) => index + 1);
}
