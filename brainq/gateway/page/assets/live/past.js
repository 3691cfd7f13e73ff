/**
 * A turn's timeline from its route. It is the only source once a turn's events are gone, and the only source of the
 * finalizer's steps, which come after the last event.
 *
 * @typedef {{id: string, kind: string, name: string, from_ms: number, to_ms: number | null, step: number, call_id: string,
 *   effect: string | null, pool: string, lanes: string[], outcome: string, detail: string, input_tokens: number,
 *   output_tokens: number, is_exact: boolean, spans: {kind: string, from_ms: number, to_ms: number | null, why: string}[]}} Told
 * @typedef {import("./rows.js").Row} Row
 * @typedef {import("./rows.js").Bar} Bar
 */

import { duration } from "../core/when.js";
import { wordOf } from "../core/words.js";
import { foldedBars } from "./folded.js";
import { PHASE_TONES, POOLS, SETTLED_TONES, bar, row } from "./rows.js";

const FINAL_STEP = "finalizer:";
/** @type {Record<string, string>} */
const PHASES = { planned: "waiting", waiting: "waiting", dispatched: "queued", running: "running", parked: "parked" };
/** @type {Record<string, {name: string, hint: string}>} */
const ROWS = {
  coordinator: { name: "Coordinator", hint: "model and decisions" },
  people: { name: "People", hint: "approvals, holds, input" },
  finalizer: { name: "Finalizer", hint: "after the answer" },
};
/** @type {Record<string, string>} */
const PLACES = { hold: "people", input: "people", parked: "people", finalizer: "finalizer" };

/** The finalizer's steps: of a turn whose rest is known by its events. @param {any} told @returns {import("./rows.js").FinalStep[]} */
export function finalStepsOf(told) {
  return bars(told)
    .filter((one) => one.id.startsWith(FINAL_STEP))
    .map((one) => ({
      step: one.id.slice(FINAL_STEP.length),
      state: one.outcome,
      error: one.detail,
      isExact: one.is_exact,
      from: told.began_at_ms + one.from_ms,
      to: told.began_at_ms + (one.to_ms ?? told.now_ms),
    }));
}

/** All rows, and the waits in which nothing else moved. @param {any} told @param {boolean} [isUnfolded] @returns {{rows: Row[], waits: {from: number, to: number}[]}} */
export function pastRows(told, isUnfolded = true) {
  const at = (/** @type {number | null} */ ms) => told.began_at_ms + (ms ?? told.now_ms);
  /** @type {Map<string, {name: string, hint: string, bars: Bar[]}>} */
  const places = new Map();
  for (const one of bars(told)) {
    const pool = one.kind === "call" ? POOLS[/** @type {keyof typeof POOLS} */ (one.effect)] : undefined;
    const lane = one.lanes.join(", ");
    const key = pool ? `${one.effect} ${lane}` : PLACES[one.kind] ?? "coordinator";
    const place = pool ? { name: pool.name, hint: lane ? `lane ${lane}` : pool.hint } : ROWS[key];
    const into = places.get(key) ?? { name: "Calls", hint: "", ...place, bars: [] };
    into.bars.push(barOf(one, at));
    places.set(key, into);
  }
  const order = ["coordinator", ...Object.keys(POOLS), "people", "finalizer"];
  const rank = (/** @type {string} */ key) => order.indexOf(key.split(" ", 1)[0] ?? "");
  const rows = [...places.entries()].sort(([a], [b]) => rank(a) - rank(b)).map(([key, place]) => row(key, place.name, place.hint, isUnfolded ? place.bars : foldedBars(place.bars)));
  const waits = bars(told).filter((one) => one.kind === "parked").map((one) => ({ from: at(one.from_ms), to: at(one.to_ms) }));
  return { rows, waits };
}

/** @param {Told} one @param {(ms: number | null) => number} at @returns {Bar} */
function barOf(one, at) {
  const settled = SETTLED_TONES[/** @type {keyof typeof SETTLED_TONES} */ (one.outcome)];
  const tones = { step: "model", reflection: "aside", compaction: "aside", queued: "wait", parked: "park", hold: "park", input: "good", cancelling: "off" };
  const tone = one.kind === "call" || one.kind === "finalizer" ? (settled ?? "good") : (tones[/** @type {keyof typeof tones} */ (one.kind)] ?? "run");
  const ran = one.spans.filter((span) => span.kind === "running").reduce((sum, span) => sum + at(span.to_ms) - at(span.from_ms), 0);
  const name = one.kind === "step" ? `step ${one.step}` : one.id.startsWith(FINAL_STEP) ? one.id.slice(FINAL_STEP.length) : one.kind === "finalizer" ? "to the result" : one.name || one.kind;
  return {
    ...bar(one.id, at(one.from_ms), at(one.to_ms), one.to_ms === null, tone, name, [
      ["call", one.call_id],
      ["outcome", one.outcome ? wordOf(one.outcome) : ""],
      ["ran", ran ? duration(ran) : ""],
      ["tokens", one.input_tokens ? `${one.input_tokens} in, ${one.output_tokens} out` : ""],
      ["", one.detail],
      ["", one.is_exact ? "" : "its exact times were not recorded"],
    ]),
    parts: one.kind === "call" ? one.spans.map((span) => ({ from: at(span.from_ms), to: at(span.to_ms), tone: PHASES[span.kind] === "running" ? tone : (PHASE_TONES[PHASES[span.kind] ?? ""] ?? "run") })) : [],
    call: one.call_id || undefined,
    step: one.kind === "step" ? one.step : undefined,
  };
}

/** @param {any} told @returns {Told[]} */
function bars(told) {
  return told?.bars ?? [];
}
