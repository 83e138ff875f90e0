import { element } from "./dom.js";
import { formatShare } from "./numbers.js";
import { barTable, kindLegend, markedText, only, written } from "./results.js";

export const TEXT = { name: "text", label: "Text", example: "The cat sat on the mat because it was tired." };
export const SECOND = { name: "second", label: "Second text (optional)", example: "" };
const QUERY = { name: "query", label: "Query", example: "Where can I sell an old car?" };
const FILTER = { name: "filter", label: "Filter by fields (optional)", example: "" };
const LINES = {
  name: "lines", label: "Texts, one a line", isLong: true,
  example: "How do I sell my car?\nHow do I cook rice?\nWhat is the best way to sell a used car?\n"
    + "Rice needs two parts of water.\nThe museum opens at nine.",
};

/**
 * What a model can be asked, by the name of its task; each has a title, and
 *
 * - fields: what is typed, {name, label, example, isLong}; a long one has several lines.
 * - path: of the route, with {model} for its name; null for the model's own.
 * - write: the body, of the model's name and the typed values.
 * - isStreamed: whether the answer comes in parts.
 * - draw: nodes, of the answer, the values, and {model, theme, again, show}: `again` asks once more,
 *   with changes to the body, and `show` shows nodes that aren't finished.
 * - suits: whether a model is asked it that has other tasks; not where it is a task of the model.
 */
export const TASKS = {
  "fill-mask": ownTask("Fill in", [{ ...TEXT, isMasked: true,
    example: "The doctor ran to see [MASK] patient." }], fillBlanks),
  classify: ownTask("Classify", [{ ...TEXT, example: "What a lovely day at the sea!" }, SECOND],
    drawClasses),
  regress: ownTask("Predict a number", [TEXT, SECOND], drawNumber),
  rerank: {
    title: "Order by a query",
    fields: [QUERY, LINES],
    path: "/v1/rerank",
    write: (model, { query, lines }) => ({ model, query, documents: splitLines(lines) }),
    draw: drawOrder,
    suits: (tasks) => tasks.includes("regress"),
  },
  tag: ownTask("Find entities", [{ ...TEXT,
    example: "Ada Lovelace was born in London and wrote to Charles Babbage." }], drawTags),
  answer: ownTask("Answer", [
    { name: "question", label: "Question", example: "Where did Ada Lovelace live?" },
    { name: "passage", label: "Passage", isLong: true,
      example: "Ada Lovelace lived in London. She wrote the first program for a machine that was"
        + " never built." },
  ], drawAnswer, ({ question, passage }) => ({ question, context: passage })),
  choose: ownTask("Choose", [
    { name: "context", label: "Beginning", example: "She opened the oven and took out" },
    { name: "endings", label: "Endings, one a line", isLong: true,
      example: "the bread.\nthe moon.\na letter." },
  ], drawChoice, ({ context, endings }) => ({ context, choices: splitLines(endings) })),
  search: {
    title: "Search",
    fields: [QUERY, FILTER],
    path: "/v1/indexes/{model}/search",
    write: (_, { query, filter }) => ({ query, ...(filter.trim() === "" ? {} : { where: filter }) }),
    draw: drawHits,
  },
  embed: {
    title: "Find neighbors",
    fields: [{ ...LINES, label: "Texts, one a line: the neighbors of the first are found" }],
    path: "/v1/embeddings",
    write: (model, { lines }) => ({ model, input: splitLines(lines) }),
    draw: drawNeighbors,
  },
  "next-sentence": ownTask("Does it follow?", [TEXT, { ...SECOND, label: "Second text",
    example: "It had been awake all night." }], drawFollows),
  score: ownTask("Score", [LINES], drawScores, ({ lines }) => splitLines(lines)),
  translate: ownTask("Translate", [{ ...TEXT, example: "The cat has seen the key." }], drawWritten),
  summarize: ownTask("Summarize", [{ ...TEXT, isLong: true }], drawWritten),
  generate: {
    ...ownTask("Continue", [{ ...TEXT, example: "The cat" }], drawGrowing),
    isStreamed: true, write: (_, { text }) => ({ inputs: text, stream: true }),
  },
};

export function ownTask(title, fields, draw, read = readTexts) {
  const write = (_, values) => ({ inputs: read(values) });
  return { title, fields, path: null, write, draw };
}

/** One text, or two as one input, which is a list in a list of inputs. */
export function readTexts({ text, second = "" }) {
  return second.trim() === "" ? text : [[text, second]];
}

function splitLines(text) {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/** The names of what a model of these tasks can be asked. */
export function listTasks(tasks) {
  return Object.keys(TASKS).filter((name) => tasks.includes(name) || TASKS[name].suits?.(tasks));
}

function fillBlanks(answer) {
  const { blanks, filled, mask } = only(answer);
  const tables = blanks.map((candidates, index) => barTable(
    blanks.length === 1 ? mask : `${mask} ${index + 1}`,
    candidates.map(({ token, probability }) => ({ name: token, share: probability })),
  ));
  return [written(filled), element("div", { class: "columns" }, tables)];
}

function drawClasses(answer) {
  const rows = Object.entries(only(answer).probabilities)
    .map(([name, share]) => ({ name, share }))
    .sort((first, second) => second.share - first.share);
  return [barTable("Labels", rows)];
}

function drawFollows(answer) {
  return [barTable("The second text", [{ name: "follows", share: only(answer) },
    { name: "doesn't follow", share: 1 - only(answer) }])];
}

function drawNumber(answer) {
  return [written(only(answer).value.toPrecision(4))];
}

function drawOrder({ results }, { lines }) {
  const texts = splitLines(lines);
  return [barTable("The best first", results.map(({ index, relevance_score: share }) =>
    ({ name: texts[index], share })))];
}

function drawTags(answer, { text }) {
  const { entities, words } = only(answer);
  const found = entities.length > 0 ? entities : words.filter(({ tag }) => tag !== "O");
  const parts = found.map(({ start, stop, type, tag, probability }) =>
    ({ start, stop, kind: type ?? tag, note: formatShare(probability) }));
  return [
    parts.length === 0 ? element("p", {}, "Nothing was found.") : kindLegend(parts),
    markedText(text, parts),
  ];
}

function drawAnswer(answer, { passage }) {
  const { text, start, stop, probability, n_best: others } = only(answer);
  const note = formatShare(probability);
  const parts = text === "" ? [] : [{ start, stop, kind: note, note }];
  const rows = others.slice(0, 5).map((one) =>
    ({ name: one.text === "" ? "(no answer)" : one.text, share: one.probability }));
  return [
    text === "" ? element("p", {}, "The passage doesn't answer this.") : null,
    markedText(passage, parts),
    barTable("Likely answers", rows),
  ];
}

function drawChoice(answer, { endings }) {
  const texts = splitLines(endings);
  const { probabilities } = only(answer);
  return [barTable("Endings", texts.map((name, index) => ({ name, share: probabilities[index] })))];
}

function drawNeighbors({ data }, { lines }) {
  const [first, ...others] = splitLines(lines);
  const [query, ...vectors] = data.map(({ embedding }) => embedding);
  const rows = vectors.map((vector, index) => {
    const share = vector.reduce((sum, number, place) => sum + number * query[place], 0);
    return { name: others[index], share, text: share.toFixed(3) };
  }).sort((one, other) => other.share - one.share);
  return [barTable(`Cosine with “${first}”`, rows),
    element("p", { class: "quiet" }, `${data.length} vectors of ${query.length} numbers.`)];
}

function drawHits({ results }) {
  if (results.length === 0) {
    return [element("p", {}, "Nothing was found.")];
  }
  return [barTable("The best first", results.map(({ id, line, is_file, text, fields, score }) => {
    const shown = Object.entries(fields).map(([key, value]) => `${key}: ${value}`);
    const name = is_file ? `${id}:${line}` : id;
    const about = element("small", { class: "quiet" }, [name, ...shown].join(", "));
    return { name: [text, element("br"), about], share: score, text: score.toFixed(3) };
  }))];
}

function drawScores({ results }) {
  const share = ({ log_probability: sum, num_tokens: count }) => Math.exp(sum / Math.max(1, count));
  return [barTable("Probability of a token, geometric mean",
    results.map((one) => ({ name: one.text, share: share(one) })))];
}

function drawWritten(answer) {
  return [written(only(answer).text)];
}

async function drawGrowing(parts, { text }, { show }) {
  const place = written(" …", text);
  show(place);
  place.lastChild.data = "";
  for await (const part of parts) {
    place.append(part);
  }
  return [place];
}
