import { choiceChips } from "./chips.js";
import { complaint, element } from "./dom.js";
import { Form } from "./form.js";
import { OTHERS } from "./others.js";
import { Refusal, Server } from "./server.js";
import { State } from "./state.js";
import { TASKS, listTasks } from "./tasks.js";
import { followTheme, preferredTheme, themeButton } from "./theme.js";

const [UNAUTHORIZED, UNAVAILABLE] = [401, 503];

/** The page: a model and a task are chosen, something is typed, and the answer is drawn. */
class Tryout {
  constructor(main) {
    this.server = new Server();
    this.theme = new State({ theme: preferredTheme(), heads: [1], head: 1 });
    followTheme(this.theme);
    this.typed = {}; // by the name of the field, for all models
    this.choices = element("div", { class: "choices" });
    this.place = element("div");
    this.result = element("section", { class: "result", "aria-label": "Result" });
    this.status = element("p", { class: "for-ears", role: "status" });
    this.keyForm = this.buildKeyForm();
    const top = element("div", { class: "top" }, document.querySelector("h1"),
      themeButton(this.theme, (theme) => this.theme.set({ theme })));
    main.append(top, this.keyForm, this.choices, this.place, this.status, this.result);
  }

  buildKeyForm() {
    const field = element("input", { type: "password", id: "key", autocomplete: "off" });
    const take = (event) => {
      event.preventDefault();
      this.server.key = field.value.trim();
      this.load();
    };
    return element("form", { class: "key", hidden: true, onsubmit: take },
      element("label", { for: "key" }, "Key of the server"), field,
      element("button", { class: "chip" }, "Use"),
      element("span", { class: "quiet" }, "It is forgotten when the page is closed."));
  }

  /** List the models; while they are being loaded, ask again. */
  async load() {
    try {
      const { data } = await this.server.ask("/v1/models");
      this.keyForm.hidden = true;
      this.show();
      this.offerModels(data);
    } catch (error) {
      this.complain(error);
      if (error.status === UNAVAILABLE) {
        setTimeout(() => this.load(), 1000 * (error.seconds ?? 1));
      }
    }
  }

  show(...nodes) {
    this.result.removeAttribute("aria-busy");
    this.result.replaceChildren(...nodes);
  }

  complain(error) {
    const isLocked = error.status === UNAUTHORIZED;
    const isFirst = isLocked && this.server.key === "";
    const wait = error.seconds ? `. Wait ${error.seconds} s.` : "";
    this.keyForm.hidden = this.keyForm.hidden && !isLocked;
    this.show(isFirst ? "" : complaint(`${error.message}${wait}`));
    if (!(error instanceof Refusal)) {
      throw error;
    }
    if (isLocked) {
      this.keyForm.querySelector("input").focus();
    }
  }

  offerModels(models) {
    const place = element("div");
    const root = offer("Model", models.map((model) => ({ value: model, text: model.id })), (model) => {
      const names = listTasks(model.tasks);
      place.replaceChildren(offer("Task",
        names.map((name) => ({ value: name, text: TASKS[name].title })),
        (name) => this.open(model, name)));
    });
    this.choices.replaceChildren(root, place);
  }

  open(model, name) {
    this.asking?.abort();
    this.show();
    const submit = (values) => this.ask(model.id, name, values);
    const form = new Form(TASKS[name].fields, this.typed, submit, model.mask);
    this.place.replaceChildren(form.root);
  }

  /** Ask a model and draw what it answers; an earlier request is given up. */
  async ask(model, name, values) {
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const task = TASKS[name];
    const path = (task.path ?? `/v1/models/{model}/${name}`)
      .replace("{model}", encodeURIComponent(model));
    const body = task.write(model, values);
    const again = (changes) => this.server.ask(path, { ...body, ...changes }, signal);
    this.result.setAttribute("aria-busy", "true");
    this.status.textContent = "";
    try {
      const answer = task.isStreamed ? this.server.stream(path, body, signal) : await again({});
      const asked = { model, theme: this.theme, again, show: (node) => this.show(node) };
      const drawn = await task.draw(answer, values, asked);
      this.show(...drawn.filter(Boolean), this.buildCommand(path, body));
      this.status.textContent = "The answer is below.";
    } catch (error) {
      if (!signal.aborted) {
        this.complain(error);
      }
    }
  }

  buildCommand(path, body) {
    const code = element("code", {}, this.server.writeCurl(path, body));
    const copy = async () => {
      getSelection().selectAllChildren(code);
      await navigator.clipboard?.writeText(code.textContent); // only over HTTPS and on localhost
    };
    return element("div", { class: "command" },
      element("h2", {}, "The same by curl"), element("pre", { tabindex: 0 }, code),
      element("button", { type: "button", class: "chip", onclick: copy }, "Copy"));
  }
}

/** Buttons of which one is chosen, at the beginning the first. */
function offer(label, options, open) {
  const choose = (value) => {
    show(value);
    open(value);
  };
  const { root, show } = choiceChips(label, options, choose);
  choose(options[0].value);
  return root;
}

Object.assign(TASKS, OTHERS); // tasks of other wings, in a module that the server writes
new Tryout(document.getElementById("page")).load();
