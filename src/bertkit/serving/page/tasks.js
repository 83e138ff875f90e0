import { drawAttention } from "./attention.js";
import { element } from "./dom.js";
import { formatShare } from "./numbers.js";
import {
  barTable, formatCosine, kindLegend, markedText, only, similarityTable, written,
} from "./results.js";

const MAX_COMPARED = 12; // lines whose similarities to each other are a readable table

const TEXT = { name: "text", label: "Text", example: "The cat sat on the mat because it was tired." };
const SECOND = { name: "second", label: "Second text (optional)", example: "" };
const LINES = {
  name: "lines", label: "Texts, one a line", isLong: true,
  example: "How do I sell my car?\nHow do I cook rice?\nWhat is the best way to sell a used car?\n"
    + "Rice needs two parts of water.\nThe museum opens at nine.",
};

/**
 * What a model can be asked, by the name of its task.
 *
 * - title: of the task.
 * - fields: what is typed, {name, label, example, isLong}; a long one has several lines.
 * - path: of the route; null for the model's own.
 * - write: the body, of the model's name and the typed values.
 * - draw: nodes, of the answer, the values, and {model, theme, again}: `again` asks once more, with
 *   changes to the body.
 */
export const TASKS = {
  "fill-mask": ownTask("Fill in", [{ ...TEXT, isMasked: true,
    example: "The doctor ran to see [MASK] patient." }], fillBlanks),
  classify: ownTask("Classify", [{ ...TEXT, example: "What a lovely day at the sea!" }, SECOND],
    drawClasses),
  regress: ownTask("Predict a number", [TEXT, SECOND], drawNumber),
  rerank: {
    title: "Order by a query",
    fields: [{ name: "query", label: "Query", example: "How do I sell my car?" },
      { ...LINES, example: LINES.example.split("\n").slice(1).join("\n") }],
    path: "/v1/rerank",
    write: (model, { query, lines }) => ({ model, query, documents: splitLines(lines) }),
    draw: drawOrder,
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
  embed: {
    title: "Compare",
    fields: [LINES],
    path: "/v1/embeddings",
    write: (model, { lines }) => ({ model, input: splitLines(lines) }),
    draw: drawSimilarities,
  },
  score: ownTask("Score", [LINES], drawScores, ({ lines }) => splitLines(lines)),
  translate: ownTask("Translate", [{ ...TEXT, example: "The cat has seen the key." }], drawWritten),
  summarize: ownTask("Summarize", [{ ...TEXT, isLong: true }], drawWritten),
  generate: ownTask("Continue", [{ ...TEXT, example: "The cat" }], drawContinuations),
  attention: ownTask("Attention", [TEXT, SECOND], drawAttention),
};

function ownTask(title, fields, draw, read = readTexts) {
  const write = (_, values) => ({ inputs: read(values) });
  return { title, fields, path: null, write, draw };
}

/** One text, or two as one input, which is a list in a list of inputs. */
function readTexts({ text, second = "" }) {
  return second.trim() === "" ? text : [[text, second]];
}

function splitLines(text) {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/** The names of what a model of these tasks can be asked. */
export function listTasks(tasks) {
  const isEncoder = !tasks.includes("translate") && !tasks.includes("summarize");
  const more = [...(tasks.includes("regress") ? ["rerank"] : []), ...(isEncoder ? ["attention"] : [])];
  return [...tasks.filter((task) => task in TASKS), ...more];
}

function fillBlanks(answer) {
  const { blanks, filled } = only(answer);
  const tables = blanks.map((candidates, index) => barTable(
    blanks.length === 1 ? "[MASK]" : `[MASK] ${index + 1}`,
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

function drawSimilarities({ data }, { lines }) {
  const texts = splitLines(lines);
  const vectors = data.map(({ embedding }) => embedding);
  const cosine = (one, other) => one.reduce((sum, number, index) => sum + number * other[index], 0);
  const near = texts.map((name, index) => {
    const share = cosine(vectors[0], vectors[index]);
    return { name, share, text: formatCosine(share) };
  }).slice(1).sort((first, second) => second.share - first.share);
  const compared = vectors.slice(0, MAX_COMPARED);
  return [
    element("p", { class: "quiet" }, `${texts.length} vectors of ${vectors[0].length} numbers.`),
    near.length > 0 ? barTable(`Neighbors of “${texts[0]}”`, near) : null,
    near.length > 0 ? similarityTable(texts.slice(0, MAX_COMPARED),
      compared.map((one) => compared.map((other) => cosine(one, other)))) : null,
  ];
}

function drawScores({ results }) {
  const share = ({ log_probability: sum, num_tokens: count }) => Math.exp(sum / Math.max(1, count));
  return [barTable("Probability of a token, geometric mean",
    results.map((one) => ({ name: one.text, share: share(one) })))];
}

function drawWritten(answer) {
  return [written(only(answer).text)];
}

function drawContinuations(answer) {
  const { prompt, answers } = only(answer);
  return answers.map(({ text }) => written(text, prompt));
}
