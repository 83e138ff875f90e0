/** Which attention is shown: all, or that from one text to one text. */
export const PAIRS = ["all", "A→A", "A→B", "B→A", "B→B"];

/**
 * What is chosen on the page, shared by all views.
 *
 * - layer: from 1.
 * - heads: the chosen ones, from 1, ascending, at least one.
 * - head: the one in focus, always among the chosen ones.
 * - token: the one that was kept by a click, from 0; null for none.
 * - side: whether that token is taken as one that looks ("from") or that is attended to ("to").
 * - pairs: one of `PAIRS`.
 * - theme: "light" or "dark".
 */
export class State {
  constructor(initial) {
    this.current = initial;
    this.listeners = new Set();
  }

  /**
   * Change what is chosen, and tell those who listen where it really changed.
   *
   * A `head` that isn't among the chosen ones is chosen alone; where `heads` leave out the one in
   * focus, the first of them comes into focus.
   *
   * @param {Object} changes some of the names above.
   */
  set(changes) {
    const unknown = Object.keys(changes).filter((name) => !(name in this.current));
    if (unknown.length > 0) {
      throw new Error(`the page's state has no ${unknown.join(", ")}`);
    }
    const next = withMatchingHeads({ ...this.current, ...changes }, changes);
    const changed = Object.keys(next).filter((name) => !isSame(next[name], this.current[name]));
    if (changed.length === 0) {
      return;
    }
    this.current = next;
    for (const listener of this.listeners) {
      listener(next, changed);
    }
  }

  /**
   * Be told of changes.
   *
   * @param {function(Object, string[])} listener gets the new state and what changed in it.
   * @returns {function()} ends it.
   */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

function withMatchingHeads(state, changes) {
  if (state.heads.includes(state.head)) {
    return state;
  }
  const { heads, head } = state;
  return "heads" in changes ? { ...state, head: heads[0] } : { ...state, heads: [head] };
}

function isSame(first, second) {
  return JSON.stringify(first) === JSON.stringify(second);
}

/**
 * The chosen heads after one more click on one of them: it is added or taken away; the last one
 * stays.
 *
 * @param {number[]} heads ascending.
 * @param {number} head
 * @returns {number[]} ascending.
 */
export function toggleHead(heads, head) {
  if (!heads.includes(head)) {
    return [...heads, head].sort((first, second) => first - second);
  }
  return heads.length === 1 ? heads : heads.filter((other) => other !== head);
}

/**
 * Whether attention from one token to another is shown.
 *
 * @param {string} pairs one of `PAIRS`.
 * @param {{segment: number}} from a token of the page.
 * @param {{segment: number}} to
 * @returns {boolean}
 */
export function isInPairs(pairs, from, to) {
  return pairs === "all" || pairs === `${"AB"[from.segment]}→${"AB"[to.segment]}`;
}
