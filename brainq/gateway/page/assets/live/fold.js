/**
 * A pure fold of a turn's events: `fold(state, event)` returns the next state. The same events give the same state, in
 * however many pieces they arrive.
 *
 * @typedef {import("./follow.js").TurnEvent} TurnEvent
 * @typedef {{phase: "waiting" | "queued" | "running" | "parked", from: number, to: number | null, why: string, attempt: number}} Span
 * @typedef {{id: string, tool: string, effect: string, step: number, status: string, detail: string, latencyMs: number,
 *   attempt: number, spans: Span[]}} Call
 * @typedef {{at: number, kind: string, waitMs: number}} Retry
 * @typedef {{step: number, attempt: number, from: number, to: number | null, text: string, thought: string, calls: number,
 *   inputTokens: number, outputTokens: number, problem: string, retries: Retry[]}} Step
 * @typedef {{call: string, tool: string, from: number, to: number | null, decision: string, edited: boolean, reason: string}} Asked
 * @typedef {{id: string, kind: string, reason: string, from: number, to: number | null}} Hold
 * @typedef {{id: string, from: number, to: number | null, state: string, step: number}} Input
 * @typedef {{kind: "opening" | "reflection" | "compaction" | "waits", from: number, to: number | null, label: string}} Aside
 * @typedef {{from: number, to: number | null, awaits: string}} Park
 * @typedef {{
 *   seq: number, from: number, last: number, state: string, ahead: number, waitsFor: string, activeAt: number, deadlineAt: number,
 *   cancelling: string | null, steps: Step[], calls: Record<string, Call>, asked: Record<string, Asked>,
 *   holds: Record<string, Hold>, inputs: Record<string, Input>, asides: Aside[], parks: Park[], diff: string,
 *   budget: string[], contextFull: number, closingAt: number, endedAt: number, ending: string, stopReason: string,
 *   elapsedMs: number,
 * }} Turn
 */

/** @type {Turn} */
export const NOTHING = Object.freeze({
  seq: 0,
  from: 0,
  last: 0,
  state: "",
  ahead: 0,
  waitsFor: "session",
  activeAt: 0,
  deadlineAt: 0,
  cancelling: null,
  steps: [],
  calls: {},
  asked: {},
  holds: {},
  inputs: {},
  asides: [],
  parks: [],
  diff: "",
  budget: [],
  contextFull: 0,
  closingAt: 0,
  endedAt: 0,
  ending: "",
  stopReason: "",
  elapsedMs: 0,
});

/** @param {Turn} turn @param {TurnEvent} event @returns {Turn} */
export function fold(turn, event) {
  if (event.seq <= turn.seq) return turn;
  const tell = TELLS[event.kind];
  const changed = tell ? tell(turn, event.data, event.at_ms) : {};
  return { ...turn, ...changed, seq: event.seq, from: turn.from || event.at_ms, last: event.at_ms };
}

/** @type {Record<string, (turn: Turn, data: Record<string, any>, at: number) => Partial<Turn>>} */
const TELLS = {
  "turn.queued": (_, data) => ({ state: "queued", ahead: data.ahead, waitsFor: data.why ?? "session" }),
  "turn.active": (_, data, at) => ({ state: "active", activeAt: at, deadlineAt: at + data.deadline_in_ms }),
  "turn.opening": (turn, data, at) => ({
    asides: [...turn.asides, { kind: "opening", from: at, to: null, label: "Reading memory and context" }],
    calls: planned(turn.calls, data.plan, 0),
  }),
  "step.started": (turn, data, at) => ({
    state: "active",
    steps: begun(ended(turn.steps, at), data, at),
    asides: closed(turn.asides, at),
  }),
  "step.retried": (turn, data, at) => ({
    steps: stepped(turn.steps, data.step, (step) => ({
      ...step,
      retries: [...step.retries, { at, kind: data.kind, waitMs: data.wait_ms }],
    })),
  }),
  "text.delta": (turn, data) => said(turn, data, "text"),
  "reasoning.delta": (turn, data) => said(turn, data, "thought"),
  "step.ended": (turn, data, at) => ({
    steps: stepped(turn.steps, data.step, (step) => ({
      ...step,
      to: at,
      calls: data.calls ?? 0,
      inputTokens: data.input_tokens ?? 0,
      outputTokens: data.output_tokens ?? 0,
      problem: data.problem ?? "",
    })),
    calls: planned(turn.calls, data.plan, data.step),
  }),
  "call.waiting": (turn, data, at) => called(turn, data, at, "waiting"),
  "call.dispatched": (turn, data, at) => called(turn, data, at, "queued"),
  "call.running": (turn, data, at) => called(turn, data, at, "running"),
  "call.parked": (turn, data, at) => called(turn, data, at, "parked", data.why),
  "call.ended": (turn, data, at) => {
    const call = known(turn.calls, data);
    const over = { status: data.status, detail: data.detail ?? "", latencyMs: data.latency_ms ?? 0 };
    return { calls: { ...turn.calls, [call.id]: { ...call, ...over, spans: closed(call.spans, at) } } };
  },
  "approval.requested": (turn, data, at) => ({
    calls: { ...turn.calls, [data.call]: known(turn.calls, data) },
    asked: {
      ...turn.asked,
      [data.call]: { call: data.call, tool: data.tool, from: at, to: null, decision: "", edited: false, reason: data.reason ?? "" },
    },
  }),
  "approval.decided": (turn, data, at) => {
    const asked = turn.asked[data.call];
    const decided = { to: at, decision: data.decision, edited: Boolean(data.edited) };
    return asked ? { asked: { ...turn.asked, [data.call]: { ...asked, ...decided } } } : {};
  },
  "hold.placed": (turn, data, at) => ({
    holds: { ...turn.holds, [data.hold]: { id: data.hold, kind: data.kind ?? "hold", reason: data.reason ?? "", from: at, to: null } },
  }),
  "hold.released": (turn, data, at) => {
    const hold = turn.holds[data.hold];
    return hold ? { holds: { ...turn.holds, [data.hold]: { ...hold, to: at } } } : {};
  },
  "input.accepted": (turn, data, at) => ({
    inputs: { ...turn.inputs, [data.input]: { id: data.input, from: at, to: null, state: "accepted", step: 0 } },
  }),
  "input.consumed": (turn, data, at) => received(turn, data, at, "consumed"),
  "input.bounced": (turn, data, at) => received(turn, data, at, "bounced"),
  "turn.parked": (turn, data, at) => ({
    state: "parked",
    parks: [...turn.parks, { from: at, to: null, awaits: data.awaits }],
  }),
  "turn.resumed": (turn, data, at) => ({
    state: "active",
    parks: closed(turn.parks, at),
    deadlineAt: turn.deadlineAt + parkedFor(turn.parks, at),
  }),
  "turn.cancelling": (_, data) => ({ cancelling: data.reason ?? "" }),
  budget: (turn, data) => ({ budget: [...turn.budget, data.spent] }),
  reflection: (turn, data, at) => ({
    asides: [...turn.asides, { kind: "reflection", from: quietSince(turn), to: at, label: data.stub ? `No reflection: ${data.stub}` : `Reflection on step ${data.step}` }],
  }),
  compaction: (turn, data, at) => ({
    asides: [
      ...turn.asides,
      { kind: "compaction", from: quietSince(turn), to: at, label: `Compaction, ${data.tokens_before} to ${data.tokens_after} tokens, by ${data.method}` },
    ],
  }),
  notice: (turn, data, at) =>
    data.waits_for
      ? { asides: [...closed(turn.asides, at), { kind: "waits", from: at, to: null, label: `Waits for ${data.waits_for}` }] }
      : { contextFull: data.context_full },
  "turn.diff": (_, data) => ({ diff: data.diff }),
  "turn.closing": (turn, data, at) => ({
    state: "closing",
    closingAt: at,
    ending: data.ending,
    stopReason: data.stop_reason,
    steps: ended(turn.steps, at),
    asides: closed(turn.asides, at),
    parks: closed(turn.parks, at),
  }),
  result: (turn, data, at) => ({
    state: data.ending,
    ending: data.ending,
    stopReason: data.stop_reason,
    elapsedMs: data.elapsed_ms ?? 0,
    endedAt: at,
    closingAt: turn.closingAt || at,
    steps: ended(turn.steps, at),
    calls: Object.fromEntries(Object.entries(turn.calls).map(([id, call]) => [id, { ...call, spans: closed(call.spans, at) }])),
    asked: allClosed(turn.asked, at),
    holds: allClosed(turn.holds, at),
    inputs: allClosed(turn.inputs, at),
  }),
};

/** A higher attempt replaces the text of the lower. @param {Step[]} steps @param {Record<string, any>} data @param {number} at */
function begun(steps, data, at) {
  const before = steps.find((step) => step.step === data.step);
  /** @type {Step} */
  const step = {
    step: data.step,
    attempt: data.attempt,
    from: before?.from ?? at,
    to: null,
    text: "",
    thought: "",
    calls: 0,
    inputTokens: 0,
    outputTokens: 0,
    problem: "",
    retries: before?.retries ?? [],
  };
  return [...steps.filter((other) => other.step !== data.step), step];
}

/** @param {Step[]} steps @param {number} number @param {(step: Step) => Step} change */
function stepped(steps, number, change) {
  return steps.map((step) => (step.step === number ? change(step) : step));
}

/** What comes of an attempt that was given up is left out. @param {Turn} turn @param {Record<string, any>} data @param {"text" | "thought"} where */
function said(turn, data, where) {
  const steps = stepped(turn.steps, data.step, (step) =>
    data.attempt === step.attempt ? { ...step, [where]: step[where] + data.text } : step,
  );
  return { steps };
}

/** @param {Step[]} steps @param {number} at @returns {Step[]} */
function ended(steps, at) {
  return closed(steps, at);
}

/**
 * @template {{to: number | null}} T
 * @param {T[]} spans
 * @param {number} at
 * @returns {T[]}
 */
function closed(spans, at) {
  return spans.some((span) => span.to === null) ? spans.map((span) => (span.to === null ? { ...span, to: at } : span)) : spans;
}

/**
 * @template {{to: number | null}} T
 * @param {Record<string, T>} spans
 * @param {number} at
 * @returns {Record<string, T>}
 */
function allClosed(spans, at) {
  return Object.fromEntries(Object.entries(spans).map(([id, span]) => [id, span.to === null ? { ...span, to: at } : span]));
}

/** @param {Record<string, Call>} calls @param {{call: string, tool: string, effect: string}[] | undefined} plan @param {number} step */
function planned(calls, plan, step) {
  const found = { ...calls };
  for (const { call, tool, effect } of plan ?? []) found[call] = { ...known(calls, { call }), tool, effect, step };
  return found;
}

/** @param {Record<string, Call>} calls @param {Record<string, any>} data @returns {Call} */
function known(calls, data) {
  const call = calls[data.call];
  if (call) return call;
  const step = Number(/^c(\d+)-/.exec(data.call)?.[1] ?? 0);
  return { id: data.call, tool: data.tool ?? "", effect: data.effect ?? "", step, status: "planned", detail: "", latencyMs: 0, attempt: 1, spans: [] };
}

/** @param {Turn} turn @param {Record<string, any>} data @param {number} at @param {Span["phase"]} phase @param {string} [why] */
function called(turn, data, at, phase, why = "") {
  const call = known(turn.calls, data);
  const attempt = data.attempt ?? call.attempt;
  /** @type {Span} */
  const span = { phase, from: at, to: null, why, attempt };
  const status = phase === "queued" ? "dispatched" : phase;
  const next = { ...call, tool: data.tool ?? call.tool, status, attempt, spans: [...closed(call.spans, at), span] };
  return { calls: { ...turn.calls, [call.id]: next } };
}

/** @param {Turn} turn @param {Record<string, any>} data @param {number} at @param {string} state */
function received(turn, data, at, state) {
  const input = turn.inputs[data.input] ?? { id: data.input, from: at };
  return { inputs: { ...turn.inputs, [data.input]: { ...input, to: at, state, step: data.step ?? 0 } } };
}

/** @param {Park[]} parks @param {number} at */
function parkedFor(parks, at) {
  const open = parks.find((park) => park.to === null);
  return open ? at - open.from : 0;
}

/** Since when nothing else was told of: what is told of only at its end began then at the earliest. @param {Turn} turn */
function quietSince(turn) {
  return turn.last || turn.from;
}
