import { ContextsPanel } from "./contexts_panel.js";
import { element } from "./dom.js";
import { linkTokens, tellShares } from "./plane_layout.js";
import { PlanePlot } from "./plane_plot.js";

export const view = {
  name: "geometry",
  controls: [],
  mount(root, page) {
    const tokens = new TokenPlanes(page);
    const contexts = page.data.contexts && new ContextsPanel(page.data.contexts);
    const slider = layerSlider(page.model.layers, (layer) => {
      showLayer(layer);
      page.set({ layer: Math.max(1, layer) }); // other views have no attention before the first
    });
    const showLayer = (layer) => {
      slider.show(layer);
      tokens.show(layer);
      contexts?.show(layer);
    };
    root.append(slider.root, tokens.root, ...(contexts ? [contexts.root] : []));
    showLayer(page.state.layer);
    page.subscribe((state, changed) => {
      if (changed.includes("layer") && state.layer !== Math.max(1, tokens.layer)) {
        showLayer(state.layer);
      }
      if (changed.includes("token")) {
        tokens.mark();
      }
    });
  },
};

/** What a layer is called; 0 is what the embeddings give. */
export function nameLayer(layer) {
  return layer === 0 ? "embeddings" : `layer ${layer}`;
}

function layerSlider(numLayers, choose) {
  const output = element("output", { for: "geometry-layer" });
  const input = element("input", {
    type: "range", id: "geometry-layer", min: 0, max: numLayers, step: 1,
    oninput: () => choose(Number(input.value)),
  });
  const show = (layer) => {
    input.value = layer;
    input.setAttribute("aria-valuetext", nameLayer(layer));
    output.textContent = nameLayer(layer);
  };
  const label = element("label", { for: "geometry-layer" }, "After");
  return { root: element("div", { class: "layer-slider options" }, label, input, output), show };
}

/** The tokens of the passage on a plane. */
class TokenPlanes {
  constructor(page) {
    this.page = page;
    this.pointed = null;
    this.plot = new PlanePlot(
      "tokens on a plane",
      page.tokens.map(markOf),
      linkTokens(page.tokens),
      { point: (token) => this.point(token), keep: (token) => this.keep(token) },
    );
    this.shares = element("p", { class: "plane-shares", "aria-live": "polite" });
    this.special = element("input", { type: "checkbox", onchange: () => this.show(this.layer) });
    this.detail = element("div", { class: "plane-detail", "aria-live": "polite" });
    const choice = element("label", {}, this.special, " with special tokens");
    const main = element("div", { class: "plane-main" }, choice, this.plot.root, this.shares);
    this.root = element("div", { class: "plane-row" }, main, this.detail);
  }

  show(layer) {
    this.layer = layer;
    const { planes, wordPlanes, words } = this.page.data;
    const plane = (this.special.checked ? planes : wordPlanes)[layer];
    const points = this.special.checked ? plane.points : this.page.tokens.map(() => null);
    if (!this.special.checked) {
      words.forEach((token, index) => {
        points[token] = plane.points[index];
      });
    }
    this.shares.textContent = tellShares(plane.shares, plane.points.length);
    this.plot.show(points);
    this.mark();
  }

  point(token) {
    this.pointed = token;
    this.mark();
  }

  keep(token) {
    this.page.set({ token: token === this.page.state.token ? null : token });
  }

  /** Set off the token that is attended to, and tell what is near it. */
  mark() {
    const kept = this.page.state.token;
    const token = this.pointed ?? kept;
    const nearest = token === null ? [] : this.page.data.nearest[this.layer][token];
    this.plot.highlight(token, nearest.map(([other]) => other), kept);
    this.detail.replaceChildren(...(token === null ? hint() : this.describe(token, nearest)));
  }

  describe(token, nearest) {
    const { tokens } = this.page;
    const rows = nearest.map(([other, cosine]) =>
      element(
        "tr", {},
        element("td", { dir: "auto" }, tokens[other].text),
        element("td", { class: "number" }, other + 1),
        element("td", { class: "number" }, cosine.toFixed(2)),
      ),
    );
    const heads = ["token", "place", "cosine"].map((name, index) =>
      element("th", { scope: "col", class: index ? "number" : null }, name),
    );
    return [
      element("h2", {}, "Nearest to ", element("bdi", {}, tokens[token].text), ` (${token + 1})`),
      element("p", { class: "quiet" }, `in the full space, after ${nameLayer(this.layer)}`),
      element("table", {}, element("thead", {}, element("tr", {}, heads)),
        element("tbody", {}, rows)),
    ];
  }
}

function markOf({ text, segment, special }, index) {
  return { text, name: `${text}, token ${index + 1}`, hue: special ? "quiet" : `c${segment}` };
}

function hint() {
  return [
    element("p", { class: "quiet" },
      "Point at a token to see which are nearest to it in the full space; click to keep it. With "
      + "the keyboard: Tab into the picture, arrows from token to token, Enter keeps one and "
      + "Escape lets it go."),
  ];
}
