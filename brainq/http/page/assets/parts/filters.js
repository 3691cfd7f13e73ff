/** The filters of a list of turns. They stand in the address: each change is a place one can come back to. */

import { h } from "../core/dom.js";
import { knownBrains } from "../live/brains.js";

const STATES = [
  ["", "Any state"],
  ["accepted", "Not ended"],
  ["active", "Active"],
  ["parked", "Parked"],
  ["queued", "Queued"],
  ["closing", "Closing"],
  ["ended", "Ended"],
  ["rejected", "Rejected"],
];
const ENDINGS = [
  ["", "Any ending"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["timed_out", "Timed out"],
  ["cancelled", "Cancelled"],
];
const TYPED_MS = 300;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

/**
 * @param {Record<string, string>} query
 * @param {(query: Record<string, string | undefined>) => void} choose
 */
export function filters(query, choose) {
  const pick = (/** @type {string} */ name) => (/** @type {Event} */ event) => choose({ ...query, [name]: /** @type {HTMLInputElement} */ (event.target).value });
  const typed = (/** @type {string} */ name) => (/** @type {Event} */ event) => {
    clearTimeout(typing);
    typing = setTimeout(() => choose({ ...query, [name]: /** @type {HTMLInputElement} */ (event.target).value.trim() }), TYPED_MS);
  };
  const isSet = ["state", "ending", "failing", "dear", "text", "session", "brain"].some((name) => query[name]);
  return h(
    "form",
    { class: "filters", role: "search", "aria-label": "Filter turns", onsubmit: (/** @type {Event} */ event) => event.preventDefault(), key: "filters" },
    h("input", { type: "search", "aria-label": "Find by turn, session or request key", placeholder: "Turn, session or key", value: query.text ?? "", oninput: typed("text"), key: "text" }),
    query.session ? h("span", { class: "badge", "data-tone": "run" }, `session ${query.session}`) : null,
    brains(query, pick("brain")),
    choice("State", STATES, query.state, pick("state")),
    choice("Ending", ENDINGS, query.ending, pick("ending")),
    toggle("Failing", query.failing === "1", (on) => choose({ ...query, failing: on ? "1" : "" })),
    choice("Cost", [["", "Any cost"], ["0.01", "over $0.01"], ["0.1", "over $0.10"], ["1", "over $1"], ["10", "over $10"]], query.dear, pick("dear")),
    isSet ? h("a", { class: "clear", href: "#/turns" }, "Clear") : null,
  );
}

/** Where there are several, and they are known. @param {Record<string, string>} query @param {(event: Event) => void} onchange */
function brains(query, onchange) {
  const known = knownBrains();
  if (known.length < 2) return null;
  return choice("Brain", [["", "Any brain"], ...known.map((one) => [one.name, one.name])], query.brain, onchange);
}

/** @param {string} name @param {string[][]} options @param {string | undefined} value @param {(event: Event) => void} onchange */
function choice(name, options, value, onchange) {
  return h("select", { "aria-label": name, value: value ?? "", onchange, "data-set": value ? "yes" : "no", key: name }, options.map(([given, shown]) => h("option", { value: given, key: given }, shown ?? "")));
}

/** @param {string} name @param {boolean} on @param {(on: boolean) => void} choose */
function toggle(name, on, choose) {
  return h("button", { class: "toggle", type: "button", "aria-pressed": String(on), onclick: () => choose(!on), key: name }, name);
}
