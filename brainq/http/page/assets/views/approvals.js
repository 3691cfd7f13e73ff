/** The inbox of approvals: what calls of all sessions ask people for. */

import { ask, enc } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { counted } from "../core/words.js";
import { approvalCards } from "../parts/approval_card.js";
import { empty, loading, refusal } from "../parts/bits.js";

const STATES = ["pending", "approved", "denied", "expired", "void", "all"];

/** @type {import("../main.js").MakeView} */
export function approvalsView(first, update) {
  const id = first.path[1];
  let state = first.query.state ?? "pending";
  let found = open();
  const card = approvalCards(update, () => found.refresh());

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

  return {
    title: () => "Approvals",
    go(place) {
      state = place.query.state ?? "pending";
      found.stop();
      found = open();
    },
    stop: () => found.stop(),
    render: () => [
      h(
        "div",
        { class: "head" },
        h("h1", null, "Approvals"),
        h("span", { class: "muted" }, found.value ? counted(found.value.length, state === "all" ? "call" : `${state} call`) : ""),
        id
          ? h("a", { href: "#/approvals" }, "All approvals")
          : h(
              "label",
              { class: "inline" },
              "State",
              h(
                "select",
                { value: state, onchange: (/** @type {Event} */ event) => go(link(["approvals"], { state: /** @type {HTMLSelectElement} */ (event.target).value })) },
                STATES.map((one) => h("option", { value: one, key: one }, one)),
              ),
            ),
      ),
      found.problem && !found.value ? refusal(found.problem) : null,
      found.value
        ? found.value.length
          ? h("div", { class: "cards" }, found.value.map((approval) => card(approval)))
          : empty(state === "pending" ? "Nobody waits for you" : "There are none", "Calls of tools that ask first appear here: ", h("code", null, "@brain.tool(approval=True)"), ".")
        : found.problem
          ? null
          : loading(6),
    ],
  };
}
