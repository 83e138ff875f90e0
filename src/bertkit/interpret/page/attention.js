import { Weights } from "./arrays.js";
import { buildControls } from "./controls.js";
import { complaint, element } from "./dom.js";
import { view } from "./heads.js";
import { Page } from "./page.js";
import { only } from "./results.js";
import { State } from "./state.js";
import { SECOND, TEXT, ownTask, readTexts } from "./tasks.js";

/** The page of the heads, whose weights come from the server, a layer at a time. */
class ServedPage extends Page {
  constructor(shared, state, root, fetchLayer) {
    super(shared, null, state, { isShown: () => root.isConnected });
    this.root = root;
    this.fetchLayer = fetchLayer;
    this.layers = new Map();
    this.drawn = state.current.layer;
  }

  weights(layer) {
    if (!this.layers.has(layer)) {
      this.layers.set(layer, this.fetchLayer(layer).then(packWeights));
      this.layers.get(layer).then(() => {
        this.drawn = layer;
      }, (error) => this.goBack(layer, error));
    }
    return this.layers.get(layer).catch(() => new Promise(() => {})); // `goBack` has told
  }

  /** Return to the layer that was drawn last, since another can't be had. */
  goBack(layer, error) {
    this.layers.delete(layer);
    this.root.prepend(complaint(error.message));
    this.set({ layer: this.drawn });
  }
}

/** Weights as the views of attention read them. */
function packWeights({ weights }) {
  const roots = Float64Array.from(weights.flat(2), (weight) => 255 * Math.sqrt(weight));
  const bytes = Uint8Array.from(roots, Math.round);
  const residuals = Int8Array.from(roots, (root, index) => Math.round(254 * (root - bytes[index])));
  return new Weights(bytes, weights[0].length, weights[0].length, new Uint8Array(residuals.buffer));
}

/** What the views share, of a result and the typed texts. */
function describe({ tokens, segments, num_layers: layers, weights }, { text, second }, name) {
  return {
    model: { name, layers, heads: weights.length },
    texts: [text, second.trim() === "" ? null : second],
    tokens: tokens.map((token, index) => ({ text: token, segment: segments[index] })),
    without: [],
  };
}

/** Lines from each token to those that it attends to, in the heads of a layer. */
function drawAttention(answer, values, { model, theme, again }) {
  const first = only(answer);
  const shared = describe(first, values, model);
  const { head, token } = first.start;
  const heads = head === null ? first.weights.map((_, index) => index + 1) : [head];
  const start = { layer: first.layer, heads, head: head ?? 1, token, side: "from", pairs: "all" };
  const state = new State({ ...start, theme: theme.current.theme });
  const root = element("div", { class: "view" });
  const end = theme.subscribe((next) => (root.isConnected ? state.set({ theme: next.theme }) : end()));
  const controls = buildControls(shared, state);
  root.append(element("div", { class: "controls" },
    view.controls.map((name) => controls[name] ?? null)));
  const page = new ServedPage(shared, state, root, async (layer) =>
    (layer === first.layer ? first : only(await again({ options: { layer } }))));
  view.mount(root, page);
  return [root];
}

export const attention = {
  ...ownTask("Attention", [TEXT, SECOND], drawAttention),
  write: (_, values) => ({ inputs: readTexts(values), options: { layer: null } }),
  suits: (tasks) => !tasks.includes("translate"),
};
