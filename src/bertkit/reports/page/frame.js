import { choiceChips } from "./chips.js";
import { buildControls } from "./controls.js";
import { complaint, element } from "./dom.js";
import { rove } from "./keys.js";
import { Page } from "./page.js";
import { State } from "./state.js";
import { followTheme, preferredTheme, themeButton } from "./theme.js";

/**
 * Build the page: its heading, tabs, controls and views.
 *
 * @param {Object[]} scripts of the views, in the order of their tabs. Each is
 *   `{name, controls, mount(root, page)}`. `controls` are the names of what stands above the view:
 *   "layer", "heads" (any number of them) or "head" (one), "pairs"; without it, layer and heads.
 *   `mount` is called when the tab is first shown, with an empty element and the view's `Page`; it
 *   may be asynchronous.
 */
export function start(scripts) {
  const main = document.getElementById("page");
  if (typeof DecompressionStream === "undefined") {
    main.append(complaint("This browser is too old for this page: use Firefox 113, Chrome or Edge"
      + " 111, Safari 16.4, or any newer one."));
    return;
  }
  const shared = JSON.parse(document.getElementById("data").textContent);
  main.append(describe(shared));
  const parts = shared.parts ?? [shared];
  const frames = parts.map((part) => new Frame(part, pickScripts(part, scripts), (theme) => {
    frames.forEach((frame) => frame.state.set({ theme }));
  }));
  if (shared.parts === undefined) {
    main.append(frames[0].root);
    frames[0].show();
  } else {
    offerParts(main, shared, frames);
  }
}

/** The scripts of the views that a part has, in the order of their tabs. */
function pickScripts(part, scripts) {
  return part.views.map(({ name }) => scripts.find((script) => script.name === name));
}

/** Let readers choose the part of a model that is shown. */
function offerParts(main, shared, frames) {
  const about = element("p", { class: "quiet" });
  const place = element("div", {});
  const options = shared.parts.map(({ title, about: words }, value) =>
    ({ value, text: title, title: words }));
  const { root, show } = choiceChips("Attention", options, open);
  function open(index) {
    show(index);
    about.textContent = `${shared.parts[index].about} ${tellSizes(shared.parts[index])}.`;
    place.replaceChildren(frames[index].root); // what is hidden isn't in the document
    frames[index].show();
  }
  main.append(element("div", { class: "parts" }, root, about), place);
  open(Math.max(0, shared.parts.findIndex(({ name }) => name === shared.shown)));
}

class Frame {
  /**
   * @param {Object} shared the page's data, or those of a part of it.
   * @param {Object[]} scripts of its views.
   * @param {function(string)} setTheme changes the theme of the whole page.
   */
  constructor(shared, scripts, setTheme) {
    this.root = element("div", { class: "frame-root" });
    this.shared = shared;
    this.setTheme = setTheme;
    this.state = new State({ ...shared.start, theme: preferredTheme() });
    followTheme(this.state); // first, so that everything else draws with its colors
    this.controls = buildControls(shared, this.state);
    this.controlBar = element("div", { class: "controls" });
    this.tabs = scripts.map((script, index) => this.buildTab(script, shared.views[index]));
    this.shown = null;
    this.build();
  }

  buildTab(script, { name, title, heading, legend, data }) {
    const panel = element("section", {
      class: "view", role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`,
    });
    const button = element(
      "button",
      {
        type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`,
        "aria-selected": "false", onclick: () => this.open(name),
      },
      title,
    );
    const [lead, ...rest] = legend;
    const paragraphs = rest.map((paragraph) => element("p", {}, paragraph));
    const page = new Page(this.shared, data, this.state, {
      show: (other) => this.open(other, true),
      isShown: (asking) => this.shown?.page === asking && this.root.isConnected,
    });
    return { name, script, panel, button, heading, lead, paragraphs, page, isMounted: false };
  }

  build() {
    const buttons = this.tabs.map((tab) => tab.button);
    const bar = element("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, buttons);
    rove(bar, buttons);
    this.lead = element("p", { class: "legend-text" });
    this.more = element("div", { class: "legend-more" });
    const more = element("details", {}, element("summary", {}, "more"), this.more);
    const legend = element("div", { class: "legend" }, this.lead, more);
    const panels = element("div", { class: "panels" }, this.tabs.map((tab) => tab.panel));
    const top = element("div", { class: "top" }, bar, themeButton(this.state, this.setTheme));
    this.root.append(top, element("div", { class: "body" }, legend, this.controlBar, panels));
  }

  /** Show what was shown before, or the first view; once the frame is in the document. */
  show() {
    this.open(this.shown?.name ?? this.tabs[0].name);
  }

  open(name, withFocus = false) {
    const next = this.tabs.find((tab) => tab.name === name);
    if (next === undefined) {
      return;
    }
    for (const tab of this.tabs) {
      tab.panel.hidden = tab !== next;
      tab.button.setAttribute("aria-selected", String(tab === next));
    }
    const names = next.script.controls ?? ["layer", "heads"];
    this.controlBar.replaceChildren(...names.map((key) => this.controls[key]).filter(Boolean));
    document.querySelector("h1").textContent = holdUnits(next.heading);
    this.lead.textContent = holdUnits(next.lead);
    this.more.replaceChildren(...next.paragraphs);
    this.more.parentElement.hidden = next.paragraphs.length === 0;
    next.button.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.shown = next;
    if (next.isMounted) {
      next.page.notify([]);
    } else {
      next.isMounted = true;
      next.page.missed.clear();
      mount(next);
    }
    if (withFocus) {
      next.button.focus();
    }
  }
}

/** Keep a number and its percent sign on one line. */
function holdUnits(text) {
  return text.replaceAll(" %", "\u00a0%");
}

async function mount(tab) {
  try {
    await tab.script.mount(tab.panel, tab.page);
  } catch (error) {
    tab.panel.append(complaint(`This view can't be drawn: ${error.message}`));
    throw error;
  }
}

function describe({ texts, labels = ["A", "B"], parts, ...shared }) {
  const sizes = parts === undefined ? `${shared.model.name}: ${tellSizes(shared)}` : shared.name;
  const passages = texts.filter((text) => text !== null).map((text, index) =>
    element(
      "p",
      { class: "passage", dir: "auto" },
      texts[1] === null ? null : element("b", { class: "segment" }, labels[index]),
      text,
    ),
  );
  return element("header", {}, passages, element("p", { class: "quiet" }, sizes));
}

function tellSizes({ model, tokens, others, without }) {
  const off = without.length > 0 ? `; heads that are switched off: ${without.join(", ")}` : "";
  const seen = others ? ` that look at ${others.length}` : "";
  return `${model.layers} layers of ${model.heads} heads, ${tokens.length} tokens${seen}${off}`;
}
