/** The inbox of approvals of all sessions, which can be decided one by one or several at once. */

import { Problem, ask, enc } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { counted, wordOf } from "../core/words.js";
import { askForBrains } from "../live/brains.js";
import { action, actionButton, said } from "../parts/action.js";
import { approvalCards } from "../parts/approval_card.js";
import { empty, loading, refusal } from "../parts/bits.js";

const STATES = ["pending", "approved", "denied", "expired", "void", "all"];

/** @type {import("../main.js").MakeView} */
export function approvalsView(first, update) {
  const id = first.path[1];
  let state = first.query.state ?? "pending";
  let found = open();
  const card = approvalCards(update, () => found.refresh());
  const deciding = action(update);
  /** What was picked, with the arguments that were shown. @type {Map<string, string>} */
  const picked = new Map();
  let isDenying = false;
  let reason = "";
  askForBrains(update);

  function open() {
    const asked = id ? `v1/approvals/${enc(id)}` : `v1/approvals?state=${enc(state)}&limit=100`;
    return source(
      async (signal) => {
        const told = await ask("GET", asked, { signal });
        return /** @type {any[]} */ (id ? [told] : told.approvals);
      },
      update,
      { every: 2_000 },
    );
  }

  /** Whether there are calls to select. */
  function isMany() {
    return !id && (found.value ?? []).filter((one) => one.state === "pending").length > 1;
  }

  /** The selected calls whose arguments have not changed. */
  function chosen() {
    return (found.value ?? []).filter((one) => one.state === "pending" && picked.get(one.id) === one.args_hash);
  }

  /** @param {"approve" | "deny"} verb */
  async function decide(verb) {
    await deciding.run(async () => {
      const all = chosen();
      /** @type {string[]} */
      const refused = [];
      for (const one of all) {
        const body = verb === "approve" ? { args_hash: one.args_hash } : { reason };
        try {
          await ask("POST", `v1/approvals/${enc(one.id)}/${verb}`, { body });
          picked.delete(one.id);
        } catch (failure) {
          if (!(failure instanceof Problem)) throw failure;
          refused.push(`${one.tool}: ${failure.message}`);
        }
      }
      isDenying = false;
      const done = `${counted(all.length - refused.length, "call")} ${verb === "approve" ? "approved" : "denied"}.`;
      return refused.length ? `${done} Refused: ${refused.join("; ")}` : done;
    });
    found.refresh();
  }

  /** @param {any[]} approvals */
  function bulk(approvals) {
    const pending = approvals.filter((one) => one.state === "pending");
    if (pending.length < 2) return said(deciding.outcome);
    const now = chosen();
    const destructive = now.filter((one) => one.effect === "destructive").length;
    const every = (/** @type {boolean} */ on) => {
      picked.clear();
      if (on) for (const one of pending) picked.set(one.id, one.args_hash);
      update();
    };
    const { outcome } = deciding;
    return h(
      "div",
      { class: "bulk", key: "bulk", role: "group", "aria-label": "Decide several" },
      h("label", { class: "inline" }, h("input", { type: "checkbox", checked: now.length === pending.length, onchange: (/** @type {Event} */ event) => every(/** @type {HTMLInputElement} */ (event.target).checked) }), now.length ? `${now.length} of ${pending.length} selected` : "Select all"),
      now.length
        ? isDenying
          ? h(
              "div",
              { class: "buttons", key: "denying" },
              h("input", { "aria-label": "Reason (the model reads it)", placeholder: "Reason (the model reads it)", initial: reason, maxlength: "2000", oninput: (/** @type {Event} */ event) => (reason = /** @type {HTMLInputElement} */ (event.target).value), once: (/** @type {HTMLElement} */ field) => field.focus() }),
              actionButton(`Deny ${now.length} selected`, outcome, () => decide("deny"), "bad"),
              actionButton("Back", outcome, () => ((isDenying = false), update()), "quiet"),
            )
          : h(
              "div",
              { class: "buttons", key: "deciding" },
              actionButton(`Approve ${now.length} selected${destructive ? `, ${destructive} destructive` : ""}`, outcome, () => decide("approve"), destructive ? "danger" : "primary"),
              actionButton("Deny selected…", outcome, () => ((isDenying = true), update())),
            )
        : null,
      said(outcome),
    );
  }

  /** @param {any} approval */
  function pickOf(approval) {
    return {
      isPicked: picked.get(approval.id) === approval.args_hash,
      pick: (/** @type {boolean} */ on) => {
        if (on) picked.set(approval.id, approval.args_hash);
        else picked.delete(approval.id);
        update();
      },
    };
  }

  return {
    title: () => "Approvals",
    go(place) {
      state = place.query.state ?? "pending";
      picked.clear();
      found.stop();
      found = open();
    },
    stop: () => found.stop(),
    render: () => [
      h(
        "div",
        { class: "head" },
        h("h1", null, "Approvals"),
        h("span", { class: "muted" }, found.value ? counted(found.value.length, state === "all" ? "call" : `${wordOf(state)} call`) : ""),
        id
          ? h("a", { href: "#/approvals" }, "All approvals")
          : h(
              "label",
              { class: "inline" },
              "State",
              h(
                "select",
                { value: state, onchange: (/** @type {Event} */ event) => go(link(["approvals"], { state: /** @type {HTMLSelectElement} */ (event.target).value })) },
                STATES.map((one) => h("option", { value: one, key: one }, one === "all" ? "all" : wordOf(one))),
              ),
            ),
      ),
      found.problem && !found.value ? refusal(found.problem) : null,
      found.value && !id ? bulk(found.value) : null,
      found.value
        ? found.value.length
          ? h("div", { class: "cards" }, found.value.map((approval) => card(approval, isMany() ? { picked: pickOf(approval) } : {})))
          : empty(state === "pending" ? "Nothing is waiting for approval" : "No calls in this state", "Calls of tools that need approval appear here: ", h("code", null, "@brain.tool(approval=True)"), ".")
        : found.problem
          ? null
          : loading(6),
    ],
  };
}
