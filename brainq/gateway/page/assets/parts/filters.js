/** The filters of a list of turns. They are part of the address, so the back button undoes a change. */

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
const SORTS = [
  ["", "Newest first"],
  ["oldest", "Oldest first"],
  ["cost", "Highest cost"],
  ["tokens", "Most tokens"],
];
const TIMES = [
  ["", "Any time"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["dates", "Between dates…"],
];
const HOUR_MS = 3_600_000;
/** @type {Record<string, number>} */
const SPANS = { "1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 168 * HOUR_MS, "30d": 720 * HOUR_MS };
const NAMES = ["state", "ending", "failing", "unknown", "dear", "text", "session", "brain", "time", "from", "to", "sort"];
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
  const isSet = NAMES.some((name) => query[name]);
  return h(
    "form",
    { class: "filters", role: "search", "aria-label": "Filter turns", onsubmit: (/** @type {Event} */ event) => event.preventDefault(), key: "filters" },
    h("input", { type: "search", "aria-label": "Find in messages, answers, metadata and ids", placeholder: "Find turns", title: "Also in metadata, such as customer=42. The search covers the newest 20,000 turns; use dates to search older ones.", value: query.text ?? "", oninput: typed("text"), key: "text" }),
    query.session ? h("span", { class: "badge", "data-tone": "run" }, `session ${query.session}`) : null,
    brains(query, pick("brain")),
    choice("State", STATES, query.state, pick("state")),
    choice("Ending", ENDINGS, query.ending, pick("ending")),
    toggle("With failures", query.failing === "1", (on) => choose({ ...query, failing: on ? "1" : "" }), "Turns that failed or timed out, or in which a call or a finalizer step failed"),
    toggle("With unknown writes", query.unknown === "1", (on) => choose({ ...query, unknown: on ? "1" : "" }), "Turns with a write that may or may not have happened"),
    choice("Time", TIMES, query.time, pick("time")),
    query.time === "dates" ? dates(query, choose) : null,
    choice("Cost", [["", "Any cost"], ["0.01", "over $0.01"], ["0.1", "over $0.10"], ["1", "over $1"], ["10", "over $10"]], query.dear, pick("dear")),
    choice("Sort", SORTS, query.sort, pick("sort")),
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

/** @param {string} name @param {boolean} on @param {(on: boolean) => void} choose @param {string} title */
function toggle(name, on, choose, title) {
  return h("button", { class: "toggle", type: "button", title, "aria-pressed": String(on), onclick: () => choose(!on), key: name }, name);
}

/** @param {Record<string, string>} query @param {(query: Record<string, string | undefined>) => void} choose */
function dates(query, choose) {
  return [
    ["from", "From"],
    ["to", "To"],
  ].map(([name, label]) =>
    h("input", { type: "date", "aria-label": label, title: label, value: query[/** @type {string} */ (name)] ?? "", onchange: (/** @type {Event} */ event) => choose({ ...query, [/** @type {string} */ (name)]: /** @type {HTMLInputElement} */ (event.target).value }), key: name }),
  );
}

/** The address's filters as the route's. @param {Record<string, string>} query @param {number} now @returns {Record<string, string>} */
export function wanted({ brain, state, ending, failing, unknown, dear, text, session, time, from, to, sort }, now) {
  /** @type {Record<string, string>} */
  const found = {};
  if (brain) found.brain = brain;
  if (state) found.state = state;
  if (ending) found.ending = ending;
  if (failing) found.failing = "true";
  if (unknown) found.unknown = "true";
  if (dear) found.min_cost_usd = dear;
  if (text) found.search = text;
  if (session) found.session = session;
  if (sort) found.sort = sort;
  const span = SPANS[time ?? ""];
  if (span) found.since = new Date(now - span).toISOString();
  if (time === "dates") {
    const [since, until] = [dayOf(from, 0), dayOf(to, 1)];
    if (since) found.since = since;
    if (until) found.until = until;
  }
  return found;
}

/** When a day begins by the reader's own clock; the last one is meant whole. @param {string | undefined} day @param {number} later */
function dayOf(day, later) {
  const [year, month, date] = (day ?? "").split("-").map(Number);
  if (!year || !month || !date) return "";
  return new Date(year, month - 1, date + later).toISOString();
}
