/** A field for messages to a turn or a session. The text stays until it is accepted. */

import { h } from "../core/dom.js";
import { actionButton, said } from "./action.js";

/**
 * @param {{
 *   id: string, label: string, placeholder: string, name: string, outcome: import("./action.js").Outcome,
 *   send: (text: string) => Promise<boolean>, beside?: import("../core/dom.js").Loose, focus?: boolean,
 * }} wanted `send` returns whether the text was accepted
 */
export function composer({ id, label, placeholder, name, outcome, send, beside, focus = false }) {
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const field = /** @type {HTMLTextAreaElement} */ (document.getElementById(id));
    const text = field.value;
    if (!text.trim() || outcome.busy) return field.focus();
    if (await send(text)) {
      if (field.value === text) field.value = "";
      fit(field);
    }
    field.focus();
  };
  const keyed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return h(
    "form",
    { class: "composer", key: id, onsubmit: submit },
    h("label", { for: id }, label),
    h("textarea", {
      id,
      rows: "1",
      placeholder,
      onkeydown: keyed,
      oninput: (/** @type {Event} */ event) => fit(/** @type {HTMLTextAreaElement} */ (event.target)),
      once: focus ? (/** @type {HTMLElement} */ field) => field.focus({ preventScroll: true }) : undefined,
    }),
    h("div", { class: "buttons" }, actionButton(name, outcome, () => {}, "primary", { type: "submit" }), beside, h("span", { class: "hint" }, "Enter sends, Shift+Enter breaks the line")),
    said(outcome),
  );
}

/** @param {HTMLTextAreaElement} field */
function fit(field) {
  field.style.setProperty("height", "auto");
  field.style.setProperty("height", `${Math.min(260, field.scrollHeight + 2)}px`);
}
