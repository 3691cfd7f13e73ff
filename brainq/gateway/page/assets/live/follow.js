/**
 * Follows a turn's events from any number to the final one. A broken stream continues after the last event that was
 * seen, so no event is missed or repeated. A hidden tab closes its stream, because browsers allow six connections to one
 * gateway in all.
 *
 * @typedef {{seq: number, kind: string, at_ms: number, data: Record<string, any>}} TurnEvent
 * @typedef {"connecting" | "live" | "waiting" | "over" | "gone" | "refused"} FollowState
 */

import { Problem, enc, request } from "../core/api.js";
import { frames } from "./sse.js";

const SHORTEST_MS = 300;
const LONGEST_MS = 5_000;

/**
 * @param {string} turnId
 * @param {(events: TurnEvent[]) => void} onEvents events that came together, in order
 * @param {(state: FollowState, problem: Problem | null) => void} onState
 * @returns {() => void} stops it
 */
export function follow(turnId, onEvents, onState) {
  let seen = 0;
  let stopped = false;
  /** @type {AbortController | null} */
  let open = null;
  /** @type {(() => void) | null} */
  let wake = null;

  async function run() {
    let failures = 0;
    while (!stopped) {
      if (document.hidden && seen) await pause(Infinity);
      if (stopped) return;
      onState("connecting", null);
      const before = seen;
      try {
        if (await readOnce()) return onState("over", null);
      } catch (failure) {
        if (stopped) return;
        if (failure instanceof Problem && !failure.passes) {
          return onState(failure.status === 410 ? "gone" : "refused", failure);
        }
      }
      if (stopped) return;
      failures = seen > before ? 0 : failures + 1;
      onState("waiting", null);
      await pause(Math.min(LONGEST_MS, SHORTEST_MS * 2 ** failures));
    }
  }

  /** @returns {Promise<boolean>} whether the final event was seen */
  async function readOnce() {
    open = new AbortController();
    const headers = seen ? { "Last-Event-ID": String(seen) } : undefined;
    const answer = await request("GET", `v1/turns/${enc(turnId)}/events`, { headers, signal: open.signal });
    if (answer.status === 204 || !answer.body) return true;
    onState("live", null);
    const reader = answer.body.getReader();
    /** @type {TurnEvent[]} */
    let batch = [];
    let isOver = false;
    const feed = frames((data) => {
      const event = /** @type {TurnEvent} */ (JSON.parse(data));
      if (event.seq <= seen) return;
      seen = event.seq;
      isOver = event.kind === "result";
      batch.push(event);
    });
    for (;;) {
      const { done, value } = await reader.read();
      if (value) feed(value);
      if (batch.length) onEvents(batch);
      batch = [];
      if (done || isOver) return isOver;
    }
  }

  /** Wait, or until the tab is looked at again. @param {number} ms */
  function pause(ms) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        wake = resolve;
        if (ms !== Infinity) setTimeout(resolve, ms);
      })
    );
  }

  function looked() {
    if (document.hidden) open?.abort();
    else wake?.();
  }

  document.addEventListener("visibilitychange", looked);
  run();
  return () => {
    stopped = true;
    open?.abort();
    wake?.();
    document.removeEventListener("visibilitychange", looked);
  };
}
