/**
 * A turn's state and what happens next, in words for people. Pure functions of its events, its routes' answers and the
 * time. If they have nothing better to say, the API's own sentence is shown.
 *
 * @typedef {import("./fold.js").Turn} Turn
 * @typedef {import("./fold.js").Call} Call
 * @typedef {{title: string, text: string, tone: string, detail?: string}} Standing
 */

import { duration } from "../core/when.js";
import { counted, endingOf, isOver, modelError, toneOf } from "../core/words.js";

const SOON_MS = 700; // a wait for a worker that is shorter says nothing

/**
 * @param {string} state
 * @param {Turn} events
 * @param {{snapshot?: any, result?: any, approvals?: any[], finalizerStep?: string, stopReason?: string | null}} known
 * @param {number} now
 * @returns {Standing}
 */
export function standingOf(state, events, known, now) {
  const found = isOver(state) ? ended(state, events, known) : going(state, events, known, now);
  const isTwice = found.text.startsWith(`${found.title} `);
  return isTwice ? { ...found, text: found.text.slice(found.title.length + 1) } : found;
}

/** @param {string} state @param {Turn} events @param {{approvals?: any[]}} known @param {number} now @returns {Standing} */
function going(state, events, known, now) {
  switch (state) {
    case "parked":
      return { title: "Waiting", text: parked(events, known.approvals ?? [], now), tone: "park" };
    case "closing":
      return { title: "Finishing", text: "The answer is ready; the turn is being recorded.", tone: "run" };
    case "active":
      return { ...active(events, now), tone: "run" };
    case "queued":
      return { title: "Queued", text: "", tone: "wait" };
    default:
      return { title: "Accepted", text: "It is not queued yet.", tone: "wait" };
  }
}

/** @param {string} state @param {Turn} events @param {{snapshot?: any, result?: any, finalizerStep?: string, stopReason?: string | null}} known @returns {Standing} */
function ended(state, events, { snapshot, result, finalizerStep, stopReason }) {
  const why = result?.stop_reason || events.stopReason || snapshot?.stop_reason || stopReason || "";
  const ending = endingOf(state, why);
  const service = why === "model_error" ? modelError(result?.error) : "";
  const after = finalizerStep ? `Still to be recorded: ${finalizerStep}.` : "";
  const title = ending.word.charAt(0).toUpperCase() + ending.word.slice(1);
  if (state === "rejected") return { title: "Rejected", text: "It was rejected on submission and never ran.", tone: "bad" };
  return { title, text: [service || ending.sentence, after].filter(Boolean).join(" "), tone: ending.tone, detail: result?.error || undefined };
}

/** @param {Turn} events @param {any[]} approvals @param {number} now */
function parked(events, approvals, now) {
  const asked = approvals.filter((one) => one.state === "pending" && !events.asked[one.call_id]?.decision);
  if (asked.length) {
    const [first] = asked;
    const left = Date.parse(first.expires_at) - now;
    const others = asked.length > 1 ? ` and ${counted(asked.length - 1, "other call")}` : "";
    return `Waiting for your approval of ${first.tool}${others}, ${duration(left)} left.`;
  }
  const calls = Object.values(events.calls).filter((call) => call.spans.at(-1)?.phase === "parked" && call.spans.at(-1)?.to === null);
  /** @type {Record<string, (names: string) => string>} */
  const words = {
    approval: (names) => `Waiting for approval of ${names}.`,
    hold: (names) => `On hold: ${names} may not start yet.`,
    outside: (names) => `Waiting for the outside result of ${names}.`,
    child: (names) => `Waiting for the child turn of ${names}.`,
    client: (names) => `Waiting for the client to run ${names}.`,
  };
  const said = Object.entries(words).flatMap(([why, sentence]) => {
    const found = calls.filter((call) => call.spans.at(-1)?.why === why);
    return found.length ? [sentence(names(found))] : [];
  });
  return said.join(" ");
}

/** @param {Turn} events @param {number} now */
function active(events, now) {
  const step = events.steps.at(-1);
  const waits = events.asides.find((aside) => aside.kind === "waits" && aside.to === null);
  if (waits) return { title: "Waiting", text: `${waits.label}.` };
  if (step && step.to === null) {
    const retry = step.retries.at(-1);
    if (retry && !step.text) return { title: "Running", text: `Step ${step.step}: the model failed (${retry.kind}) and is being called again, try ${step.retries.length + 1}.` };
    const does = step.text ? "is writing" : step.thought ? "is thinking" : "was called";
    return { title: "Running", text: `Step ${step.step}: the model ${does}, ${duration(now - step.from)} so far.` };
  }
  const open = Object.values(events.calls).filter((call) => call.spans.at(-1)?.to === null);
  const running = open.filter((call) => call.status === "running");
  const queued = open.filter((call) => call.status === "dispatched");
  const lanes = open.filter((call) => call.status === "waiting");
  const parts = [
    running.length ? `running ${names(running)}` : "",
    queued.length ? `${names(queued)} ${queued.length === 1 ? "waits" : "wait"} for a worker` : "",
    lanes.length ? `${names(lanes)} ${lanes.length === 1 ? "waits" : "wait"} for ${lanes.length === 1 ? "its lane" : "their lanes"}` : "",
  ].filter(Boolean);
  if (parts.length) return { title: "Running", text: `${capital(parts.join("; "))}.` };
  const since = waitingSince(events);
  return since && now - since > SOON_MS ? { title: "Waiting", text: `Waiting for a coordinator, ${duration(now - since)} so far.` } : { title: "Running", text: "" };
}

/** Since when a coordinator is waited for; 0 where none is. @param {Turn} events */
export function waitingSince(events) {
  if (events.state !== "active" || events.steps.at(-1)?.to === null) return 0;
  const calls = Object.values(events.calls);
  if (calls.some((call) => call.spans.at(-1)?.to === null || call.status === "planned")) return 0;
  return Math.max(events.activeAt, events.steps.at(-1)?.to ?? 0, ...calls.map((call) => call.spans.at(-1)?.to ?? 0), ...events.parks.map((park) => park.to ?? 0));
}

/** Tools, each once: `count_stock (12), refund`. @param {Call[]} calls */
function names(calls) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const call of calls) found.set(call.tool || call.id, (found.get(call.tool || call.id) ?? 0) + 1);
  return [...found].map(([tool, count]) => (count > 1 ? `${tool} (${count})` : tool)).join(", ");
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What a list says under a turn's message: plain words for the ids of machines. @param {any} turn as lists have it */
export function noteOf(turn) {
  if (isOver(turn.state)) {
    if (turn.stop_reason === "answered") return turn.tokens ? counted(turn.tokens, "token") : "answered";
    const service = turn.stop_reason === "model_error" ? modelError(turn.note) : "";
    const detail = String(turn.note ?? "").replace(/^[a-z_]+(: |$)/, "");
    return service || detail || endingOf(turn.state, turn.stop_reason).sentence || turn.note || "";
  }
  const note = String(turn.note ?? "").replace(/\bc\d+-\d+ (?=[A-Za-z_])/g, "");
  return note ? capital(note).replace(/^Waits for a person's approval of/, "Waiting for approval of").replace(/^Waits for /, "Waiting for ") : "…";
}

/** The tone of a turn in a list. @param {string} state @param {string | null | undefined} stopReason */
export function toneOfTurn(state, stopReason) {
  return isOver(state) ? endingOf(state, stopReason).tone : toneOf(state);
}
