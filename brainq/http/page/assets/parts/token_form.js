/** Asks for a token, where the gateway does. */

import { h } from "../core/dom.js";
import { keep } from "../core/token.js";

/** @param {string} why the API's own words */
export function tokenForm(why) {
  return h(
    "section",
    { class: "lone", key: "token" },
    h("h1", null, "Who asks?"),
    h("p", null, "This gateway wants a token: ", h("code", null, "brainq token create"), " makes one. It is kept for this tab alone."),
    h(
      "form",
      { onsubmit: taken },
      h("label", { for: "token" }, "Token"),
      h("input", { id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-why", once: focus }),
      h("p", { class: "hint", id: "token-why" }, `The gateway said: ${why}.`),
      h("button", { class: "button primary", type: "submit" }, "Go on"),
    ),
  );
}

/** @param {SubmitEvent} event */
function taken(event) {
  event.preventDefault();
  const given = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("token")).trim();
  if (given) keep(given);
}

/** @param {HTMLElement} field */
function focus(field) {
  field.focus();
}
