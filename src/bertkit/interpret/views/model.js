import { element } from "./dom.js";

/** All heads of all layers at a glance. */
export const view = {
  name: "model",
  controls: [],
  mount(root, page) {
    root.append(element("p", {}, `${page.model.layers} × ${page.model.heads}`));
  },
};
