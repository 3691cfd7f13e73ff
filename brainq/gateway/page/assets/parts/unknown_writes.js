/** Writes that may or may not have happened: each write, when it started, and what to do. */

import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { ago, exact } from "../core/when.js";
import { counted } from "../core/words.js";
import { inLine } from "./json.js";

const MOST = 5;

/** @param {any[] | null | undefined} calls @returns {any[]} */
export function unknownIn(calls) {
  return (calls ?? []).filter((call) => call.status === "unknown");
}

/** @param {any[]} unknown calls @param {{turn_id: string, session_id: string}} turn @param {boolean} isOver its answer is there: no message reaches it any more */
export function unknownWrites(unknown, turn, isOver) {
  if (!unknown.length) return null;
  const rest = unknown.length - MOST;
  return h(
    "section",
    { class: "strip unknown", role: "alert", key: "unknown", "data-tone": "bad" },
    h("strong", null, unknown.length === 1 ? "A write may or may not have happened" : `${counted(unknown.length, "write")} may or may not have happened`),
    h(
      "ul",
      null,
      unknown.slice(0, MOST).map((call) =>
        h(
          "li",
          { key: call.call_id },
          h("a", { href: link(["turns", turn.turn_id], { call: call.call_id }) }, call.tool || call.call_id),
          h("code", { dir: "auto" }, inLine(call.arguments, 300)),
          call.started_at_ms ? h("small", { class: "muted" }, `started ${exact(call.started_at_ms)}, `, ago(call.started_at_ms)) : null,
        ),
      ),
      rest > 0 ? h("li", { key: "rest" }, `and ${counted(rest, "more", "more")}, below`) : null,
    ),
    h("p", null, "Check in the service whether it happened. Then tell the model ", isOver ? h("a", { href: link(["sessions", turn.session_id]) }, "in its session") : "with a message below", "."),
  );
}
