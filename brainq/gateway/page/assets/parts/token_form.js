/** The form for a token, shown if the gateway requires one. */

import { h } from "../core/dom.js";
import { isRefused, keep } from "../core/token.js";

/** @param {string} why the API's own words */
export function tokenForm(why) {
  const left = why === "signed out";
  return h(
    "section",
    { class: "lone", key: "token" },
    h("h1", null, isRefused() ? "Token not accepted" : "Sign in"),
    h("p", { id: "token-why", role: "status" }, isRefused() ? "The gateway does not know this token: it may be mistyped, revoked or expired. Enter another one." : left ? "You signed out. This tab keeps no token." : "This gateway needs a token. It is kept for this tab alone."),
    h(
      "form",
      { onsubmit: taken },
      h("label", { for: "token" }, "Token"),
      h("input", { id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-why", "aria-invalid": String(isRefused()), once: focus }),
      left ? null : h("p", { class: "hint" }, `The gateway answered: ${why}`),
      h("button", { class: "button primary", type: "submit" }, "Sign in"),
    ),
    h("p", { class: "hint" }, "To make one: ", h("code", null, "brainq token create me -s '*' --verb read --verb submit --verb steer --verb decide"), ". Add ", h("code", null, "--verb operate"), " to see the fleet."),
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
