/** The calls of an ended turn in a chat. They are read when they are opened, and shown as in the view of a turn. */

import { ask, enc } from "../core/api.js";
import { h } from "../core/dom.js";
import { counted } from "../core/words.js";
import { NOTHING } from "../live/fold.js";
import { callCards } from "./one_call.js";

const PAGE = 1_000;

/** @param {() => void} update */
export function pastCalls(update) {
  /** @type {Map<string, {calls: any[] | null, problem: string}>} */
  const read = new Map();
  /** Calls that are shown whole, by their turns. @type {Map<string, Set<string>>} */
  const opened = new Map();

  /** @param {string} turnId */
  async function load(turnId) {
    const one = { calls: null, problem: "" };
    read.set(turnId, one);
    update();
    try {
      const told = await ask("GET", `v1/turns/${enc(turnId)}/calls?limit=${PAGE}`);
      Object.assign(one, { calls: told.calls });
    } catch (failure) {
      Object.assign(one, { problem: /** @type {Error} */ (failure).message });
    }
    update();
  }

  /** @param {any} turn of a session's history */
  function of(turn) {
    if (!turn.calls) return null;
    const known = read.get(turn.turn_id);
    const whole = opened.get(turn.turn_id) ?? new Set();
    opened.set(turn.turn_id, whole);
    const toggle = (/** @type {Event} */ event) => {
      if (/** @type {HTMLDetailsElement} */ (event.target).open && !read.has(turn.turn_id)) void load(turn.turn_id);
    };
    // As a turn that is watched: what one call's card reads of it.
    const watched = /** @type {any} */ ({ turnId: turn.turn_id, events: NOTHING, approvals: { value: [] } });
    return h(
      "details",
      { class: "past-calls", key: "calls", ontoggle: toggle },
      h("summary", null, counted(turn.calls, "call")),
      !known ? null : known.problem ? h("p", { class: "bad" }, known.problem) : known.calls ? callCards(watched, known.calls, { opened: whole, update }) : h("p", { class: "muted" }, "…"),
    );
  }

  return { of };
}
