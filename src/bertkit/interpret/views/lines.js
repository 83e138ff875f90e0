import { isInPairs } from "./state.js";

/** More lines than this are never drawn: the strongest are. */
export const MAX_LINES = 20000;
/** Of long texts fewer, whose lines are long and slow to draw: so many by as many tokens. */
export const MAX_LINES_BY_TOKENS = 1000000;

/**
 * The lines of the head view.
 *
 * @param {Weights} weights of a layer.
 * @param {{tokens: Object[], others: Object[]}} page query and key tokens.
 * @param {Object} choice {heads, pairs, threshold, focus}: `threshold` is the least weight that is
 *   drawn; `focus` is {token, side} as in the page's state, or null for all tokens.
 * @returns {{lines: Object[], numLeft: number, shareLeft: number}} lines {head, from, to, weight},
 *   the weakest first; how many others there are, and their share of all weight.
 */
export function findLines(weights, page, choice) {
  const counts = Array.from({ length: 256 }, () => 0);
  visit(weights, page, choice, (head, from, to, byte) => {
    counts[byte] += 1;
  });
  const least = leastByte(counts, choice.threshold, mostLines(weights));
  const lines = [];
  visit(weights, page, choice, (head, from, to, byte) => {
    if (byte >= least) {
      lines.push({ head, from, to, weight: weightOf(byte) });
    }
  });
  lines.sort((first, second) => first.weight - second.weight);
  return { lines, ...measureLeft(counts, least) };
}

/**
 * How much each token is attended to by the one in focus, or attends to it: the mean of heads.
 *
 * @param {Weights} weights of a layer.
 * @param {{tokens: Object[], others: Object[]}} page query and key tokens.
 * @param {{heads: number[], pairs: string}} choice
 * @param {{token: number, side: string}} focus
 * @returns {Object[]} for each token of the other side {mean, head, weight}: the mean, the head
 *   in which it is strongest, and how strong it is there; null where `pairs` leave it out.
 */
export function findShares(weights, page, { heads, pairs }, { token, side }) {
  const { tokens, others } = page;
  return (side === "from" ? others : tokens).map((_, other) => {
    const [from, to] = side === "from" ? [token, other] : [other, token];
    if (!isInPairs(pairs, tokens[from], others[to])) {
      return null;
    }
    const each = heads.map((head) => weights.at(head, from, to));
    const weight = Math.max(...each);
    const mean = each.reduce((sum, one) => sum + one, 0) / each.length;
    return { mean, head: heads[each.indexOf(weight)], weight };
  });
}

function visit(weights, { tokens, others }, { heads, pairs, focus }, see) {
  const isShown = (from, to) => isInPairs(pairs, { segment: from }, { segment: to });
  const allowed = [0, 1].map((from) => [0, 1].map((to) => isShown(from, to)));
  for (const head of heads) {
    const bytes = weights.head(head);
    for (const from of range(focus, "from", tokens.length)) {
      for (const to of range(focus, "to", others.length)) {
        const byte = bytes[from * others.length + to];
        if (byte > 0 && allowed[tokens[from].segment][others[to].segment]) {
          see(head, from, to, byte);
        }
      }
    }
  }
}

function range(focus, side, length) {
  return focus?.side === side ? [focus.token] : Array.from({ length }, (_, index) => index);
}

/** How many lines are drawn at most. */
function mostLines({ length, width }) {
  return Math.min(MAX_LINES, Math.floor(MAX_LINES_BY_TOKENS / Math.max(length, width)));
}

/** The least byte that is drawn, so that there aren't too many lines. */
function leastByte(counts, threshold, most) {
  let least = Math.max(1, Math.ceil(255 * Math.sqrt(threshold) - 1e-9));
  let num = counts.slice(least).reduce((sum, count) => sum + count, 0);
  while (num > most) {
    num -= counts[least];
    least += 1;
  }
  return least;
}

function measureLeft(counts, least) {
  const sums = counts.map((count, byte) => count * weightOf(byte));
  const add = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  const whole = add(sums);
  return {
    numLeft: add(counts.slice(0, least)),
    shareLeft: whole > 0 ? add(sums.slice(0, least)) / whole : 0,
  };
}

function weightOf(byte) {
  return (byte / 255) ** 2;
}
