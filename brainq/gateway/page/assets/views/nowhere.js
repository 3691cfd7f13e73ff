/** The view for an unknown address. */

import { h } from "../core/dom.js";

/** @type {import("../main.js").MakeView} */
export function nowhereView() {
  return {
    title: () => "Nothing here",
    render: () => [
      h("section", { class: "lone" }, h("h1", null, "There is nothing here"), h("p", null, h("a", { href: "#/turns" }, "All turns"), " is a place to begin.")),
    ],
    stop() {},
  };
}
