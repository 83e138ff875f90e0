import { element } from "./dom.js";
import { rove } from "./keys.js";

const MASK = "[MASK]"; // in examples; a model has its own

/** Fields for what is typed, and a button that asks. */
export class Form {
  /**
   * `typed`, what was typed before, and the values for `submit` are by the names of the fields;
   * `mask` is how the model writes a blank.
   */
  constructor(fields, typed, submit, mask) {
    this.typed = typed;
    this.mask = mask ?? MASK;
    this.boxes = fields.map((field) => this.buildBox(field));
    this.submit = () => submit(
      Object.fromEntries(fields.map(({ name }, index) => [name, this.boxes[index].value])));
    const isLong = fields.some((field) => field.isLong);
    const hint = isLong ? "Ctrl+Enter asks; Enter alone does in a field of one line."
      : "Enter asks, Shift+Enter begins a new line.";
    this.root = element(
      "form", { class: "ask", onsubmit: (event) => this.take(event) },
      fields.map((field, index) => [
        element("label", { for: `field-${field.name}` }, field.label), this.boxes[index],
        field.isMasked ? this.buildWords(field.name, this.boxes[index]) : null,
      ]),
      element("p", {}, element("button", { class: "chip go" }, "Ask"),
        element("span", { class: "quiet" }, ` ${hint}`)),
    );
  }

  buildBox({ name, example, isLong }) {
    const box = element("textarea", {
      id: `field-${name}`, rows: isLong ? 5 : 2, dir: "auto", spellcheck: "false",
      oninput: () => {
        this.typed[name] = box.value;
      },
      onkeydown: (event) => {
        const asks = isLong ? event.ctrlKey || event.metaKey : !event.shiftKey;
        if (event.key === "Enter" && asks && !event.isComposing) {
          this.take(event);
        }
      },
    });
    box.value = this.typed[name] ?? example.replaceAll(MASK, this.mask);
    return box;
  }

  buildWords(name, box) {
    return new MaskableWords(box, this.mask, () => {
      this.typed[name] = box.value;
      this.submit();
    }).root;
  }

  take(event) {
    event.preventDefault();
    this.submit();
  }
}

/** The words of a text as buttons: each turns into the mask and back. */
class MaskableWords {
  constructor(box, mask, submit) {
    this.box = box;
    this.mask = mask;
    this.submit = submit;
    this.hidden = new Map(); // the words behind masks, by the number of their piece
    this.root = element("div", { class: "maskable" });
    box.addEventListener("input", () => {
      this.hidden.clear();
      this.draw();
    });
    this.draw();
  }

  draw(current = 0) {
    const pieces = split(this.box.value, this.mask);
    const nodes = pieces.map(({ text, isWord }, index) => {
      const canChange = isWord && (text !== this.mask || this.hidden.has(index));
      return canChange ? element("button", {
        type: "button", "aria-pressed": String(text === this.mask),
        onclick: () => this.change(pieces, index),
      }, text) : text;
    });
    const buttons = nodes.filter((node) => node instanceof Node);
    const words = element("span",
      { role: "group", dir: "auto", "aria-label": "Words to hide" }, nodes);
    this.root.replaceChildren(
      element("span", { class: "quiet" }, "Choose a word to hide it: "), words);
    if (buttons.length > 0) {
      rove(words, buttons, 1, Math.max(0, buttons.indexOf(nodes[current])));
    }
    return nodes[current];
  }

  change(pieces, index) {
    const { text } = pieces[index];
    const next = this.hidden.get(index) ?? this.mask;
    this.hidden.delete(index);
    if (next === this.mask) {
      this.hidden.set(index, text);
    }
    const texts = pieces.map((piece) => piece.text);
    this.box.value = texts.with(index, next).join("");
    this.draw(index).focus();
    this.submit();
  }
}

/** The words of a text and what is between them; the mask is a word. */
function split(text, mask) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  return text.split(mask).flatMap((part, index) => {
    const words = [...segmenter.segment(part)].map(({ segment, isWordLike }) =>
      ({ text: segment, isWord: isWordLike }));
    return index > 0 ? [{ text: mask, isWord: true }, words].flat() : words;
  });
}
