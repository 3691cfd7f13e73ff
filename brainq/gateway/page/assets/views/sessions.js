/** The sessions, most recently used first, and a way to open any session by its id. */

import { ask } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago } from "../core/when.js";
import { counted } from "../core/words.js";
import { cellsAway, empty, loading, refusal, turnBadge } from "../parts/bits.js";
import { newChatButton } from "../parts/new_chat.js";

const ID = "[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,127}";

/** @type {import("../main.js").MakeView} */
export function sessionsView(_, update) {
  const found = source((signal) => ask("GET", "v1/sessions?limit=100", { signal }), update, { every: 3_000 });

  return {
    title: () => "Sessions",
    stop: () => found.stop(),
    render() {
      const sessions = found.value?.sessions;
      return [
        h("div", { class: "head" }, h("h1", null, "Sessions"), newChatButton()),
        opener(),
        found.problem && !found.problem.passes ? refusal(found.problem) : null,
        cellsAway(found.value),
        !sessions ? (found.problem && !found.problem.passes ? null : loading(10)) : sessions.length ? table(sessions) : empty("No sessions yet", "A session begins with its first message."),
      ];
    },
  };
}

function opener() {
  const open = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const id = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("session")).trim();
    if (id) go(link(["sessions", id]));
  };
  return h(
    "form",
    { class: "filters", onsubmit: open, key: "opener" },
    h("label", { class: "inline", for: "session-id" }, "Open a session"),
    h("input", {
      id: "session-id",
      name: "session",
      placeholder: "Session id, such as acme:42",
      pattern: ID,
      title: "At most 128 letters, digits and . _ : @ + = - characters; your token may require a prefix, such as acme:",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
    }),
    h("button", { class: "button", type: "submit" }, "Open"),
  );
}

/** @param {any[]} sessions */
function table(sessions) {
  return h(
    "div",
    { class: "sessions", role: "table", "aria-label": "Sessions" },
    h("div", { class: "session-row head-row", role: "row" }, ["Session", "Last turn", "Turns", "Last used"].map((name) => h("span", { role: "columnheader", key: name }, name))),
    sessions.map((session) =>
      h(
        "div",
        { class: "session-row", role: "row", key: session.session_id },
        h("span", { role: "cell", class: "c-session" }, h("a", { href: link(["sessions", session.session_id]) }, session.session_id), h("small", null, standing(session))),
        h("span", { role: "cell", class: "c-last" }, turnBadge(session.last_turn.state, session.last_turn.stop_reason, session.last_turn.unknown_calls), h("a", { class: "quiet-link", href: link(["turns", session.last_turn.turn_id]) }, session.last_turn.message || session.last_turn.turn_id)),
        h("span", { role: "cell", class: "number" }, String(session.turns)),
        h("span", { role: "cell", class: "c-when" }, ago(session.last_turn.accepted_at)),
      ),
    ),
  );
}

/** @param {any} session */
function standing(session) {
  return [session.is_paused ? "paused" : "", session.waiting ? `${counted(session.waiting, "turn")} waiting` : "", session.flags ? counted(session.flags, "readiness flag") : ""].filter(Boolean).join(" · ");
}
