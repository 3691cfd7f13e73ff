/**
 * An action that a person starts through the API: a button that shows its progress, and the API's refusal.
 *
 * @typedef {{busy: boolean, problem: import("../core/api.js").Problem | null, said: string}} Outcome
 */

import { Problem } from "../core/api.js";
import { h } from "../core/dom.js";

/**
 * The state of one action. `run` performs it, one run at a time.
 *
 * @param {() => void} update
 */
export function action(update) {
  /** @type {Outcome} */
  const outcome = { busy: false, problem: null, said: "" };
  return {
    outcome,
    /** @param {() => Promise<string | void>} work its text is said when it is done @returns {Promise<boolean>} whether it was done */
    async run(work) {
      if (outcome.busy) return false;
      Object.assign(outcome, { busy: true, problem: null, said: "" });
      update();
      try {
        outcome.said = (await work()) ?? "";
        return true;
      } catch (failure) {
        if (!(failure instanceof Problem)) throw failure;
        outcome.problem = failure;
        return false;
      } finally {
        outcome.busy = false;
        update();
      }
    },
  };
}

/** @param {string} name @param {Outcome} outcome @param {() => void} onclick @param {string} [kind] @param {Record<string, any>} [more] */
export function actionButton(name, outcome, onclick, kind = "", more = {}) {
  return h("button", { class: `button ${kind}`, type: "button", disabled: outcome.busy, "aria-busy": String(outcome.busy), onclick, key: name, ...more }, name);
}

/** What came of it, where it is looked for: beside the button. @param {Outcome} outcome */
export function said(outcome) {
  const { problem } = outcome;
  return h(
    "p",
    { class: "said", role: "status", "data-bad": problem ? "yes" : "no", key: "said" },
    problem ? `${problem.title ? `${problem.title}: ` : ""}${problem.field ? `${problem.field}: ` : ""}${problem.message}` : outcome.said,
  );
}
