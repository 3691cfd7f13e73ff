/** A button that copies, and reports that it has. */

import { h } from "../core/dom.js";

const SAID_MS = 1_200;

/** @param {string | (() => string)} text @param {string} what such as `code` @param {string} [label] */
export function copyButton(text, what, label = "Copy") {
  return h(
    "button",
    { class: "copy quiet", type: "button", title: `Copy the ${what}`, "aria-label": `Copy the ${what}`, onclick: copying(text) },
    label,
  );
}

/** What a click on a button does: it copies, and the button says so for a moment. @param {string | (() => string)} text */
export function copying(text) {
  return async (/** @type {Event} */ event) => {
    const button = /** @type {HTMLElement} */ (event.currentTarget);
    event.preventDefault();
    const done = await copied(typeof text === "string" ? text : text());
    button.dataset.copied = done ? "yes" : "no";
    setTimeout(() => delete button.dataset.copied, SAID_MS);
  };
}

/** @param {string} text @returns {Promise<boolean>} whether it was copied */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

/** Without https a browser keeps its clipboard from pages; what a person selected may be copied all the same. @param {string} text */
function copiedBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
