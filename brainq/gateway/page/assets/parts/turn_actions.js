/** Actions on a turn: hold and release, cancel, and retry abandoned finalizer steps. */

import { ask, enc } from "../core/api.js";
import { h } from "../core/dom.js";
import { duration } from "../core/when.js";
import { action, actionButton, said } from "./action.js";

/**
 * @param {import("../live/watch.js").Watched} turn
 * @param {() => void} update
 */
export function turnActions(turn, update) {
  const at = `v1/turns/${enc(turn.turnId)}`;
  const doing = action(update);
  const mending = action(update);
  let isAsking = false;

  /** @param {() => Promise<string | void>} work */
  async function act(work) {
    isAsking = false;
    await doing.run(work);
    turn.refresh();
  }

  const hold = () =>
    act(async () => {
      await ask("POST", `${at}/holds`, { body: { reason: "held from the page" } });
      return "Held: calls that change something wait until you release it.";
    });
  const cancel = () =>
    act(async () => {
      const { cancelled } = await ask("POST", `${at}/cancel`, { body: { reason: "cancelled from the page" } });
      return cancelled === "ended" ? "The turn had already ended." : cancelled === "cancelled" ? "The turn was cancelled before it began." : "The turn was asked to stop.";
    });
  /** @param {any} one */
  const release = (one) =>
    act(async () => {
      await ask("DELETE", `${at}/holds/${enc(one.id)}`);
      return "Released.";
    });

  /** @param {string} step empty: all that were given up */
  const retry = async (step) => {
    await mending.run(async () => {
      const { steps } = await ask("POST", `${at}/finalizer/retry`, { body: { step } });
      return steps.map((/** @type {any} */ one) => `${one.step}: ${one.outcome}${one.error ? `, ${one.error}` : ""}`).join("; ") || "There was nothing to retry.";
    });
    turn.past.refresh();
  };

  return {
    /** The buttons next to the title. */
    bar() {
      if (turn.isOver || !turn.state || turn.state === "closing") return said(doing.outcome);
      const { outcome } = doing;
      return h(
        "div",
        { class: "actions", key: "actions" },
        h(
          "div",
          { class: "buttons" },
          isAsking
            ? [actionButton("Cancel the turn", outcome, cancel, "bad"), actionButton("Keep it running", outcome, () => ((isAsking = false), update()), "quiet")]
            : [actionButton("Hold", outcome, hold), actionButton("Cancel…", outcome, () => ((isAsking = true), update()))],
        ),
        said(outcome),
      );
    },
    /** The holds that keep calls from starting. */
    holds() {
      const standing = turn.isOver ? [] : (turn.holds.value ?? []);
      return standing.map((/** @type {any} */ one) =>
        h(
          "div",
          { class: "strip park", key: one.id },
          h("span", null, one.kind === "readiness" ? "Not ready yet" : "Held", one.reason ? `: ${one.reason}` : "", ". Calls that change something wait."),
          h("span", { class: "muted" }, `Ends in ${duration(one.ends_in_ms)}; then calls that wait are ${{ deny: "denied", release: "let go", cancel: "cancelled with the turn" }[/** @type {"deny"} */ (one.on_timeout)]}.`),
          actionButton("Release", doing.outcome, () => release(one)),
        ),
      );
    },
    retry,
    mending: mending.outcome,
  };
}
