import { readBytes, Vectors, Weights } from "./arrays.js";

/**
 * What a view sees of the page; each view has one of its own.
 *
 * - model: {name, layers, heads, features}, `features` being those of one head.
 * - texts: [first, second or null].
 * - tokens: [{text, segment, word, start, stop, special}] as the model reads them. `segment` is 0
 *   or 1, `word` counts from 0 (−1 for [CLS] and [SEP]), `start` and `stop` are where the token
 *   stands in its text (`texts[segment].slice(start, stop)`), `special` says that it is in no text.
 * - others: the key tokens, where they are of another text; else the same as `tokens`.
 * - numAllowed: how many tokens of `others`, from the first, each token may attend to.
 * - patterns: [layer − 1][head − 1] → {name, entropy, shares: {next: 0.1, …}}.
 * - without: names of the heads that are switched off, such as "5.3".
 * - startsWhole: the page wasn't told to begin with a layer.
 * - data: what the view's `collect` gave.
 */
export class Page {
  /**
   * @param {Object} shared the page's data.
   * @param {*} data of the view.
   * @param {State} state
   * @param {Object} frame {show(name, page), isShown(page)}.
   */
  constructor(shared, data, state, frame) {
    const { model, texts, tokens, patterns, without, numAllowed, startsWhole } = shared;
    Object.assign(
      this, { model, texts, tokens, patterns, without, numAllowed, startsWhole, data },
    );
    this.others = shared.others ?? tokens;
    this.shared = shared;
    this.store = state;
    this.frame = frame;
    this.listeners = new Set();
    this.missed = new Set();
    state.subscribe((_, changed) => this.notify(changed));
  }

  /** What is chosen: {layer, heads, head, token, side, pairs, theme}; see `State`. */
  get state() {
    return this.store.current;
  }

  /** Change some of what is chosen, for all views. */
  set(changes) {
    this.store.set(changes);
  }

  /**
   * Be told of changes while this view is shown; what changed while it wasn't is told when it is
   * shown again. The theme is among it: drawings made of `color` are drawn again then.
   *
   * @param {function(Object, string[])} listener gets the state and the names of what changed.
   * @returns {function()} ends it.
   */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Go to another view, by its name; where the page hasn't this one (see `views`), stay. */
  show(name) {
    this.frame.show(name);
  }

  /** The names of the views that the page has. */
  get views() {
    return this.shared.views.map((view) => view.name);
  }

  /**
   * The attention weights of a layer, unpacked when they are first asked for.
   *
   * @param {number} layer from 1.
   * @returns {Promise<Weights>}
   */
  weights(layer) {
    return remember(this.shared, `${this.shared.prefix}weights-${layer}`, async (name) => {
      const residuals = await readBytes(`${this.shared.prefix}residuals-${layer}`);
      const lengths = [this.tokens.length, this.others.length];
      return new Weights(await readBytes(name), ...lengths, residuals);
    });
  }

  /**
   * Query, key and value of a layer.
   *
   * @param {number} layer from 1.
   * @returns {Promise<Vectors|null>} null where the page was made without them.
   */
  vectors(layer) {
    return remember(this.shared, `${this.shared.prefix}vectors-${layer}`, async (name) => {
      const bytes = await readBytes(name);
      const lengths = [this.tokens.length, this.others.length];
      const { scales } = this.shared;
      return bytes === null ? null : new Vectors(bytes, scales[layer - 1], ...lengths);
    });
  }

  /** Tell the view what changed, or keep it for when it is shown; the frame calls this. */
  notify(changed) {
    changed.forEach((name) => this.missed.add(name));
    if (this.missed.size === 0 || !this.frame.isShown(this)) {
      return;
    }
    const names = [...this.missed];
    this.missed.clear();
    for (const listener of this.listeners) {
      listener(this.state, names);
    }
  }
}

const remembered = new WeakMap();

/** What `make` gave for a name, made once. */
function remember(owner, name, make) {
  if (!remembered.has(owner)) {
    remembered.set(owner, new Map());
  }
  const known = remembered.get(owner);
  if (!known.has(name)) {
    known.set(name, make(name));
  }
  return known.get(name);
}
