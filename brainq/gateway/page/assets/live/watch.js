/**
 * All data of one turn, kept up to date: its events as they arrive, and the data that they do not contain (arguments,
 * results, messages, what happens next), which is read again when an event reports a change.
 */

import { ask, enc } from "../core/api.js";
import { source } from "../core/source.js";
import { clockSays } from "../core/when.js";
import { isOver } from "../core/words.js";
import { NOTHING, fold } from "./fold.js";
import { follow } from "./follow.js";

const PAGE = 1_000; // what the API gives at once
const MOST = 5_000; // messages of one turn that are shown
const FINALIZER_MS = 1_500;

/** Which answers an event makes old. @type {[RegExp, ("messages" | "calls" | "approvals" | "holds")[]][]} */
const CHANGES = [
  [/^(step|input|turn\.closing|result|compaction)/, ["messages"]],
  [/^(step\.ended|call|approval|turn\.opening|result)/, ["calls"]],
  [/^(approval|turn\.closing|result)/, ["approvals"]],
  [/^(hold|turn\.(active|closing)|input\.consumed|result)/, ["holds"]],
];

/**
 * @param {string} turnId
 * @param {() => void} changed
 */
export function watchTurn(turnId, changed) {
  const at = `v1/turns/${enc(turnId)}`;
  let isKnown = false;

  const seen = source(
    async (signal) => {
      const told = await ask("GET", at, { signal });
      if (told.snapshot?.now_ms) clockSays(told.snapshot.now_ms);
      if (!isKnown) begin(told);
      return told;
    },
    changed,
    { least: 700 },
  );
  const result = lazily((signal) => ask("GET", `${at}/result`, { signal }));
  const messages = lazily(async (signal) => {
    /** @type {any[]} */
    const found = [];
    for (let page; !page || (page.length === PAGE && found.length < MOST); found.push(...page)) {
      page = (await ask("GET", `${at}/transcript?limit=${PAGE}&after=${found.length}`, { signal })).messages;
    }
    return found;
  });
  const calls = lazily(async (signal) => (await ask("GET", `${at}/calls?limit=${PAGE}`, { signal })).calls);
  const approvals = lazily(async (signal) => (await ask("GET", `${at}/approvals`, { signal })).approvals);
  const holds = lazily(async (signal) => (await ask("GET", `${at}/holds`, { signal })).holds);
  // The request does not change, so it is read once.
  const request = lazily((signal) => ask("GET", `${at}/request`, { signal }));
  const children = lazily(async (signal) => (await ask("GET", `${at}/children`, { signal })).children);
  // The finalizer's steps of an ended turn come after the last event, so they are read here.
  const past = lazily(
    async (signal) => {
      const told = await ask("GET", `${at}/timeline`, { signal });
      const goesOn = seen.value?.snapshot?.awaits === "finalizer";
      if (goesOn) setTimeout(() => !signal.aborted && ended(), FINALIZER_MS);
      return told;
    },
    { least: 1_000 },
  );
  const decided = lazily(async (signal) => (await ask("GET", `${at}/decision`, { signal })).decision);
  const lazy = { messages, calls, approvals, holds };
  let childCalls = -1;
  let childrenAreFinal = false;
  /** @type {() => void} */
  let unfollow = () => {};

  const self = {
    turnId,
    events: NOTHING,
    /** @type {import("./follow.js").FollowState} */
    stream: "connecting",
    /** @type {import("../core/api.js").Problem | null} */
    streamProblem: null,
    seen,
    result,
    past,
    decided,
    request,
    ...lazy,
    /** The turns that its calls started, by these calls; asked for where there may be any. @returns {Map<string, any>} */
    childrenByCall() {
      const may = Object.values(self.events.calls).filter((call) => call.spans.some((span) => span.why === "child")).length;
      const spent = (result.value?.spends ?? []).some((/** @type {any} */ spend) => spend.kind === "child");
      const isOld = may !== childCalls || (self.isOver && !childrenAreFinal);
      if ((may || spent) && isOld) {
        childCalls = may;
        childrenAreFinal = self.isOver;
        children.refresh();
      }
      return new Map((children.value ?? []).map((/** @type {any} */ one) => [one.call_id, one]));
    },
    /** How it stands, by whoever knows the newest. @returns {string} */
    get state() {
      /** @type {string} */
      const told = self.events.state || seen.value?.state || "";
      return isOver(seen.value?.state ?? "") ? seen.value.state : told;
    },
    /** @returns {boolean} */
    get isOver() {
      return isOver(self.state);
    },
    /** Read again what a person has just changed. */
    refresh() {
      seen.refresh();
      for (const one of Object.values(lazy)) if (one.begun) one.refresh();
    },
    stop() {
      unfollow();
      for (const one of [seen, result, past, decided, request, children, ...Object.values(lazy)]) one.stop();
    },
  };

  /** The turn is there: from now on it is followed. @param {any} told */
  function begin(told) {
    isKnown = true;
    request.refresh();
    if (told.state === "rejected") return;
    unfollow = follow(turnId, took, (state, problem) => {
      self.stream = state;
      self.streamProblem = problem;
      if (state === "gone" || state === "over") ended();
      changed();
    });
    for (const one of Object.values(lazy)) one.refresh();
  }

  /** @param {import("./follow.js").TurnEvent[]} events */
  function took(events) {
    self.events = events.reduce(fold, self.events);
    /** @type {Set<keyof typeof lazy>} */
    const old = new Set();
    for (const { kind } of events) {
      for (const [which, names] of CHANGES) if (which.test(kind)) names.forEach((name) => old.add(name));
    }
    for (const name of old) lazy[name].refresh();
    if (events.some(({ kind }) => !kind.endsWith(".delta"))) seen.refresh();
    if (events.some(({ kind }) => kind === "result")) ended();
    changed();
  }

  function ended() {
    seen.refresh();
    result.refresh();
    past.refresh();
    decided.refresh();
  }

  /**
   * A source that reads nothing until it is started.
   *
   * @template T
   * @param {(signal: AbortSignal) => Promise<T>} load
   * @param {{least?: number}} [pace]
   */
  function lazily(load, pace = { least: 500 }) {
    /** @type {import("../core/source.js").Source<T> | null} */
    let inner = null;
    return {
      get value() {
        return inner?.value;
      },
      get problem() {
        return inner?.problem ?? null;
      },
      get begun() {
        return inner !== null;
      },
      refresh() {
        if (inner) inner.refresh();
        else inner = source(load, changed, pace);
      },
      stop() {
        inner?.stop();
      },
    };
  }

  return self;
}

/** @typedef {ReturnType<typeof watchTurn>} Watched */
