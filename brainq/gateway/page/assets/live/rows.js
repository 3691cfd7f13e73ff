/**
 * A turn as rows of bars: coordinator, the pools' lanes, people, outside, finalizer. Pure functions of its events, its
 * routes' answers and the time.
 *
 * @typedef {import("./fold.js").Turn} Turn
 * @typedef {{from: number, to: number, tone: string}} Part
 * @typedef {{key: string, from: number, to: number, open: boolean, tone: string, label: string, facts: [string, string][],
 *   parts: Part[], line: number, call?: string, calls?: string[], step?: number}} Bar
 * @typedef {{key: string, name: string, hint: string, lines: number, bars: Bar[]}} Row
 * @typedef {{step: string, state: string, error: string, isExact: boolean, from: number, to: number}} FinalStep
 */

import { duration } from "../core/when.js";
import { PARKED_FOR, QUEUED_FOR, endingOf, wordOf } from "../core/words.js";
import { foldedBars } from "./folded.js";

export const POOLS = {
  read_only: { name: "Reads", hint: "parallel pool" },
  local_write: { name: "Local writes", hint: "serial pool" },
  network: { name: "Network", hint: "serial pool" },
  destructive: { name: "Destructive", hint: "serial pool" },
};

const WORKER_MS = 700; // a wait for a worker that is shorter says nothing

/** @type {Record<string, string>} */
export const PHASE_TONES = { waiting: "lane", queued: "lane", running: "run", parked: "park" };
export const SETTLED_TONES = { completed: "good", failed: "bad", timed_out: "bad", timed_out_late: "bad", unknown: "bad", denied: "off", cancelled: "off", done: "good", dead: "bad" };

/**
 * @param {Turn} turn
 * @param {number} now
 * @param {{lanes?: Record<string, string[]>, finalSteps?: FinalStep[], isUnfolded?: boolean}} beside lanes of calls, by their ids
 * @returns {Row[]}
 */
export function rowsOf(turn, now, { lanes = {}, finalSteps = [], isUnfolded = true } = {}) {
  const rows = [
    row("coordinator", "Coordinator", "model and decisions", coordinator(turn, now)),
    ...pools(turn, now, lanes, isUnfolded),
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
  for (const [from, to] of waitsForWorkers(turn, now)) {
    bars.push(bar(`worker ${from}`, from, to ?? now, to === null, "wait", "waiting for a worker", [["", "No coordinator had taken it yet"]]));
  }
  for (const step of turn.steps) {
    const tokens = step.inputTokens || step.outputTokens ? `${step.inputTokens} in, ${step.outputTokens} out` : "";
    bars.push({
      step: step.step,
      parts: tries(step, now),
      ...named(`step ${step.step}`, step.from, step.to ?? now, step.to === null, step.problem ? "bad" : "model", `step ${step.step}`, [
        ["attempt", step.attempt > 1 ? String(step.attempt) : ""],
        ["requests", step.calls ? `${step.calls} ${step.calls === 1 ? "call" : "calls"}` : ""],
        ["tokens", tokens],
        [step.retries.length === 1 ? "retry" : "retries", step.retries.map((retry) => `${retry.kind.replaceAll("_", " ")}, then ${duration(retry.waitMs)} of waiting`).join("; ")],
        ["not acted on", step.problem],
      ]),
    });
  }
  turn.asides.forEach((aside, index) => {
    bars.push(bar(`${aside.kind} ${index}`, aside.from, aside.to ?? now, aside.to === null, aside.kind === "waits" ? "wait" : "aside", aside.kind, [["", aside.label]]));
  });
  return bars;
}

/** Each try of a step, and the wait before the next one: what failed is seen to have failed. @param {import("./fold.js").Step} step @param {number} now @returns {Part[]} */
function tries(step, now) {
  if (!step.retries.length) return [];
  /** @type {Part[]} */
  const parts = [];
  let from = step.from;
  for (const retry of step.retries) {
    const again = Math.min(retry.at + retry.waitMs, step.to ?? now);
    parts.push({ from, to: retry.at, tone: "bad" }, { from: retry.at, to: again, tone: "lane" });
    from = again;
  }
  return [...parts, { from, to: step.to ?? now, tone: step.problem ? "bad" : "model" }];
}

/** When the turn was to go on and no coordinator had it yet. @param {Turn} turn @param {number} now @returns {[number, number | null][]} */
function waitsForWorkers(turn, now) {
  /** @type {[number, number | null][]} */
  const found = [];
  const until = turn.closingAt || turn.endedAt || null;
  for (let at = 0; at <= turn.steps.length; at += 1) {
    const next = turn.steps[at];
    const since = dueAt(turn, at);
    const to = next ? next.from : until;
    const busy = turn.asides.some((aside) => aside.from < (to ?? now) && (aside.to ?? now) > since);
    if (since && !busy && (next || isDue(turn)) && (to ?? now) - since > WORKER_MS) found.push([since, to]);
  }
  return found;
}

/** When the step at this place could have begun. @param {Turn} turn @param {number} at */
function dueAt(turn, at) {
  const before = turn.steps[at - 1];
  if (!before) return turn.activeAt;
  const calls = Object.values(turn.calls).filter((call) => call.step === before.step);
  const ends = calls.flatMap((call) => call.spans.map((span) => span.to ?? Infinity));
  const due = Math.max(before.to ?? Infinity, ...ends);
  return Number.isFinite(due) ? due : 0;
}

/** Whether a coordinator has to act next, and nobody else. @param {Turn} turn */
function isDue(turn) {
  return turn.state === "active" && Object.values(turn.calls).every((call) => call.status !== "planned");
}

/** One row an effect, or a lane where it is known. @param {Turn} turn @param {number} now @param {Record<string, string[]>} lanes @param {boolean} isUnfolded */
function pools(turn, now, lanes, isUnfolded) {
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
    .map(([key, { name, hint, bars }]) => row(key, name, hint, isUnfolded ? bars : foldedBars(bars)));
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
    bar("result", turn.closingAt, turn.endedAt || now, !turn.endedAt, turn.ending ? endingOf(turn.ending, turn.stopReason).tone : "good", "to the result", [
      ["ending", endingOf(turn.ending, turn.stopReason).word],
    ]),
  ];
  for (const step of steps) {
    bars.push(
      bar(`final ${step.step}`, step.from, step.to, false, step.state === "done" ? "good" : "bad", step.step, [
        ["state", wordOf(step.state)],
        ["", step.error],
        ["", step.isExact ? "" : "its exact times were not recorded"],
      ]),
    );
  }
  return bars;
}

/** A bar without parts of its own. @param {string} key @param {number} from @param {number} to @param {boolean} open @param {string} tone @param {string} label @param {[string, string][]} facts */
function named(key, from, to, open, tone, label, facts) {
  return { key, from, to, open, tone, label, facts: facts.filter(([, value]) => value), line: 0 };
}

/** @param {string} key @param {number} from @param {number} to @param {boolean} open @param {string} tone @param {string} label @param {[string, string][]} facts @returns {Bar} */
export function bar(key, from, to, open, tone, label, facts) {
  return { ...named(key, from, to, open, tone, label, facts), parts: [] };
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
