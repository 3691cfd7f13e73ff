/** Small elements that every view uses. */

import { h } from "../core/dom.js";
import { counted, endingOf, toneOf, wordOf } from "../core/words.js";
import { copying } from "./copy.js";

const NO_BREAK = "\u00a0"; // a count stays with its noun

/** How something stands, in a word and a colour. @param {string} state */
export function badge(state) {
  return toneBadge(toneOf(state), wordOf(state));
}

/** @param {string} tone @param {string} word */
export function toneBadge(tone, word) {
  return h("span", { class: "badge", "data-tone": tone }, h("span", { class: "dot", "aria-hidden": "true" }), word);
}

/**
 * A turn's state or ending. A turn with a write that may have happened is never shown as a success.
 *
 * @param {string} state @param {string | null | undefined} [stopReason] @param {number} [unknown] how many writes have an unknown outcome
 */
export function turnBadge(state, stopReason, unknown = 0) {
  const { word, tone } = endingOf(state, stopReason);
  return unknown ? toneBadge("bad", `${word}, ${counted(unknown, "unknown write").replaceAll(" ", NO_BREAK)}`) : toneBadge(tone, word);
}

/** An id, in full, that can be copied. @param {string} id @param {string} [what] */
export function idOf(id, what = "id") {
  return h(
    "button",
    { class: "id quiet", type: "button", title: `Copy this ${what}`, "aria-label": `Copy the ${what} ${id}`, onclick: copying(id) },
    id,
  );
}

/** Nothing to show, and what would. @param {string} title @param {...import("../core/dom.js").Loose} more */
export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), more.length ? h("p", null, ...more) : null);
}

/** A refusal in the API's own words. @param {import("../core/api.js").Problem} problem @param {string} [what] */
export function refusal(problem, what = "This could not be read") {
  return h("div", { class: "refusal", role: "alert" }, h("strong", null, problem.title || what), h("span", null, problem.message));
}

/** Which of several cells are missing in what is shown. @param {any} answer */
export function cellsAway(answer) {
  const away = /** @type {string[]} */ (answer?.cells_away ?? []);
  return away.length ? h("p", { class: "muted", role: "status", key: "cells-away" }, `Not answering, and missing here: cell ${away.join(", cell ")}.`) : null;
}

/** What is shown before the first answer; and why there is none yet. @param {import("../core/api.js").Problem | null} problem @param {number} rows */
export function awaited(problem, rows) {
  return [problem?.passes ? h("p", { class: "muted", role: "status" }, `${[problem.title, problem.message].filter(Boolean).join(": ").replace(/\.?$/, ".")} It is asked again.`) : null, loading(rows)];
}

/** What is shown while the first answer is on its way; it has the height of what comes. @param {number} lines */
export function loading(lines) {
  return h("div", { class: "loading", role: "status", "aria-busy": "true", "aria-label": "Loading" }, Array.from({ length: lines }, () => h("span", null)));
}

/** A named figure. @param {string} name @param {import("../core/dom.js").Loose} value @param {string} [title] */
export function figure(name, value, title) {
  return h("div", { class: "figure", title }, h("dt", null, name), h("dd", null, value));
}
