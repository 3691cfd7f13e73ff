/**
 * A turn as rows of bars: coordinator, the pools' lanes, people, outside, finalizer. Pure: from what its events said,
 * what its routes say beside, and the time.
 *
 * @typedef {import("./fold.js").Turn} Turn
 * @typedef {{from: number, to: number, tone: string}} Part
 * @typedef {{key: string, from: number, to: number, open: boolean, tone: string, label: string, facts: [string, string][],
 *   parts: Part[], line: number, call?: string}} Bar
 * @typedef {{key: string, name: string, hint: string, lines: number, bars: Bar[]}} Row
 * @typedef {{step: string, state: string, error: string, isExact: boolean, from: number, to: number}} FinalStep
 */

import { duration } from "../core/when.js";
import { PARKED_FOR, QUEUED_FOR, wordOf } from "../core/words.js";

export const POOLS = {
  read_only: { name: "Reads", hint: "parallel pool" },
  local_write: { name: "Local writes", hint: "serial pool" },
  network: { name: "Network", hint: "serial pool" },
  destructive: { name: "Destructive", hint: "serial pool" },
};

/** @type {Record<string, string>} */
export const PHASE_TONES = { waiting: "lane", queued: "lane", running: "run", parked: "park" };
export const SETTLED_TONES = { completed: "good", failed: "bad", timed_out: "bad", timed_out_late: "bad", unknown: "bad", denied: "off", cancelled: "off", done: "good", dead: "bad" };

/**
 * @param {Turn} turn
 * @param {number} now
 * @param {{lanes?: Record<string, string[]>, finalSteps?: FinalStep[]}} beside lanes of calls, by their ids
 * @returns {Row[]}
 */
export function rowsOf(turn, now, { lanes = {}, finalSteps = [] } = {}) {
  const rows = [
    row("coordinator", "Coordinator", "model and decisions", coordinator(turn, now)),
    ...pools(turn, now, lanes),
    row("people", "People", "approvals, holds, input", people(turn, now)),
    row("outside", "Outside", "results, child turns", outside(turn, now)),
    row("finalizer", "Finalizer", "after the answer", finalizer(turn, now, finalSteps)),
  ];
  return rows.filter((found) => found.bars.length || found.key === "coordinator");
}

/** @param {Turn} turn @param {number} now @returns {Bar[]} */
function coordinator(turn, now) {
  const from = turn.from;
  const queued = turn.activeAt || turn.endedAt || now;
  /** @type {Bar[]} */
  const bars = [];
  if (turn.ahead || (!turn.activeAt && from)) {
    bars.push(bar("queued", from, queued, !turn.activeAt && !turn.endedAt, "wait", QUEUED_FOR[turn.waitsFor] ?? turn.waitsFor, [["turns before it", String(turn.ahead)]]));
  }
  for (const step of turn.steps) {
    const tokens = step.inputTokens || step.outputTokens ? `${step.inputTokens} in, ${step.outputTokens} out` : "";
    bars.push(
      bar(`step ${step.step}`, step.from, step.to ?? now, step.to === null, step.problem ? "bad" : "model", `step ${step.step}`, [
        ["attempt", step.attempt > 1 ? String(step.attempt) : ""],
        ["asks for", step.calls ? `${step.calls} ${step.calls === 1 ? "call" : "calls"}` : ""],
        ["tokens", tokens],
        ["asked again", step.retries.map((retry) => `${retry.kind}, after ${duration(retry.waitMs)}`).join("; ")],
        ["not acted on", step.problem],
      ]),
    );
  }
  turn.asides.forEach((aside, index) => {
    bars.push(bar(`${aside.kind} ${index}`, aside.from, aside.to ?? now, aside.to === null, aside.kind === "waits" ? "wait" : "aside", aside.kind, [["", aside.label]]));
  });
  return bars;
}

/** One row an effect, or a lane where it is known. @param {Turn} turn @param {number} now @param {Record<string, string[]>} lanes */
function pools(turn, now, lanes) {
  /** @type {Map<string, {name: string, hint: string, bars: Bar[]}>} */
  const found = new Map();
  for (const call of Object.values(turn.calls)) {
    if (!call.spans.length) continue;
    const pool = POOLS[/** @type {keyof typeof POOLS} */ (call.effect)] ?? { name: call.effect || "Calls", hint: "" };
    const lane = lanes[call.id]?.join(", ") ?? "";
    const key = `${call.effect} ${lane}`;
    const into = found.get(key) ?? { name: pool.name, hint: lane ? `lane ${lane}` : pool.hint, bars: [] };
    into.bars.push(callBar(call, now));
    found.set(key, into);
  }
  const order = Object.keys(POOLS);
  return [...found.entries()]
    .sort(([a], [b]) => order.indexOf(a.split(" ", 1)[0] ?? "") - order.indexOf(b.split(" ", 1)[0] ?? ""))
    .map(([key, { name, hint, bars }]) => row(key, name, hint, bars));
}

/** @param {import("./fold.js").Call} call @param {number} now @returns {Bar} */
function callBar(call, now) {
  const last = call.spans.at(-1);
  const open = last?.to === null;
  const settled = SETTLED_TONES[/** @type {keyof typeof SETTLED_TONES} */ (call.status)];
  const parked = last?.phase === "parked" && open ? PARKED_FOR[last.why] ?? "" : "";
  const ran = call.spans.filter((span) => span.phase === "running");
  const waited = call.spans.filter((span) => span.phase === "waiting" || span.phase === "queued");
  return {
    ...bar(call.id, call.spans[0]?.from ?? now, last?.to ?? now, open, settled ?? "run", call.tool || call.id, [
      ["call", call.id],
      ["status", parked || wordOf(call.status)],
      ["ran", ran.length ? duration(sum(ran, now)) : ""],
      ["waited", waited.length ? duration(sum(waited, now)) : ""],
      ["effect", call.effect],
      ["attempt", call.attempt > 1 ? String(call.attempt) : ""],
      ["", call.detail],
    ]),
    parts: call.spans.map((span) => ({ from: span.from, to: span.to ?? now, tone: span.phase === "running" && settled ? settled : PHASE_TONES[span.phase] ?? "run" })),
    call: call.id,
  };
}

/** @param {Turn} turn @param {number} now @returns {Bar[]} */
function people(turn, now) {
  return [
    ...Object.values(turn.asked).map((asked) => ({
      ...bar(`approval ${asked.call}`, asked.from, asked.to ?? now, asked.to === null, asked.decision === "approved" ? "good" : asked.to === null ? "park" : "off", `approval of ${asked.tool}`, [
        ["call", asked.call],
        ["decision", asked.decision ? wordOf(asked.decision) + (asked.edited ? ", with other arguments" : "") : "waits"],
        ["why", asked.reason],
      ]),
      call: asked.call,
    })),
    ...Object.values(turn.holds).map((hold) =>
      bar(`hold ${hold.id}`, hold.from, hold.to ?? now, hold.to === null, "park", hold.kind === "readiness" ? "not ready" : "hold", [["why", hold.reason], ["id", hold.id]]),
    ),
    ...Object.values(turn.inputs).map((input) =>
      bar(`input ${input.id}`, input.from, input.to ?? now, input.to === null, input.state === "consumed" ? "good" : input.to === null ? "lane" : "park", "input", [
        ["receipt", input.state === "consumed" ? `read by step ${input.step}` : input.state === "bounced" ? "became a turn of its own" : "waits for the next step"],
        ["id", input.id],
      ]),
    ),
  ];
}

/** @param {Turn} turn @param {number} now @returns {Bar[]} */
function outside(turn, now) {
  return Object.values(turn.calls).flatMap((call) =>
    call.spans
      .filter((span) => span.phase === "parked" && span.why !== "approval" && span.why !== "hold")
      .map((span, index) => ({
        ...bar(`outside ${call.id} ${index}`, span.from, span.to ?? now, span.to === null, "park", call.tool || call.id, [["call", call.id], ["", PARKED_FOR[span.why] ?? span.why]]),
        call: call.id,
      })),
  );
}

/** @param {Turn} turn @param {number} now @param {FinalStep[]} steps @returns {Bar[]} */
function finalizer(turn, now, steps) {
  if (!turn.closingAt) return [];
  /** @type {Bar[]} */
  const bars = [
    bar("result", turn.closingAt, turn.endedAt || now, !turn.endedAt, "good", "to the result", [
      ["ending", wordOf(turn.ending)],
      ["because", turn.stopReason.replaceAll("_", " ")],
    ]),
  ];
  for (const step of steps) {
    bars.push(
      bar(`final ${step.step}`, step.from, step.to, false, step.state === "done" ? "good" : "bad", step.step, [
        ["state", wordOf(step.state)],
        ["", step.error],
        ["", step.isExact ? "" : "its exact times were not written down"],
      ]),
    );
  }
  return bars;
}

/** @param {string} key @param {number} from @param {number} to @param {boolean} open @param {string} tone @param {string} label @param {[string, string][]} facts @returns {Bar} */
export function bar(key, from, to, open, tone, label, facts) {
  return { key, from, to, open, tone, label, facts: facts.filter(([, value]) => value), parts: [], line: 0 };
}

/** Bars that overlap stand on lines of their own. @param {string} key @param {string} name @param {string} hint @param {Bar[]} bars @returns {Row} */
export function row(key, name, hint, bars) {
  /** @type {number[]} */
  const busyUntil = [];
  const placed = [...bars]
    .sort((a, b) => a.from - b.from || a.to - b.to)
    .map((found) => {
      let line = busyUntil.findIndex((until) => until <= found.from);
      if (line < 0) line = busyUntil.length;
      busyUntil[line] = found.open ? Infinity : found.to;
      return { ...found, line };
    });
  return { key, name, hint, lines: Math.max(1, busyUntil.length), bars: placed };
}

/** @param {{from: number, to: number | null}[]} spans @param {number} now */
function sum(spans, now) {
  return spans.reduce((total, span) => total + (span.to ?? now) - span.from, 0);
}
