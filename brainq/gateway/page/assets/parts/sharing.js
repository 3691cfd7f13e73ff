/** Ways to share a turn: its address, its request as curl or Python, its raw JSON; and a way to run it again. */

import { ask } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { action, actionButton, said } from "./action.js";
import { copying } from "./copy.js";
import { block } from "./json.js";
import { messageId } from "./receipts.js";

/**
 * @param {import("../live/watch.js").Watched} turn
 * @param {() => void} update
 */
export function sharing(turn, update) {
  const doing = action(update);
  let isOpen = false;
  let isRaw = false;
  const runId = messageId("again");

  async function again() {
    const request = turn.request.value;
    await doing.run(async () => {
      const told = await ask("POST", "v1/turns", { body: bodyOf(request), headers: { "Idempotency-Key": runId } });
      go(link(["turns", told.turn_id]));
    });
  }

  return {
    isRaw: () => isRaw,
    menu() {
      const request = turn.request.value;
      const whole = Boolean(request?.user_message);
      const close = () => ((isOpen = false), update());
      const item = (/** @type {string} */ name, /** @type {() => string} */ text) => h("button", { class: "menu-item", type: "button", onclick: copying(text), key: name }, name);
      return h(
        "div",
        { class: "menu", key: "menu", onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close() },
        h("button", { class: "button", type: "button", "aria-expanded": String(isOpen), onclick: () => ((isOpen = !isOpen), update()), key: "open" }, "More"),
        isOpen
          ? h(
              "div",
              { class: "menu-items", key: "items" },
              whole ? actionButton("Run again", doing.outcome, again, "menu-item", { title: "Submit the same message to the same session as a new turn", disabled: doing.outcome.busy || request.attachments > 0 }) : null,
              item("Copy link", () => location.href),
              whole ? item("Copy as curl", () => curlOf(request, new URL("v1/turns", document.baseURI).href)) : null,
              whole ? item("Copy as Python", () => pythonOf(request)) : null,
              item("Copy raw JSON", () => JSON.stringify(rawOf(turn), null, 2)),
              h("button", { class: "menu-item", type: "button", "aria-pressed": String(isRaw), onclick: () => ((isRaw = !isRaw), (isOpen = false), update()), key: "raw" }, isRaw ? "Hide raw JSON" : "Show raw JSON"),
            )
          : null,
        doing.outcome.problem ? said(doing.outcome) : null,
      );
    },
  };
}

/** @param {import("../live/watch.js").Watched} turn @param {() => void} update */
export function rawJson(turn, update) {
  return h("section", { class: "panel", key: "raw" }, h("h2", null, "Raw JSON"), block(rawOf(turn), `Raw JSON of ${turn.turnId}`, update));
}

/** All that the API told. @param {import("../live/watch.js").Watched} turn */
function rawOf(turn) {
  return {
    turn: turn.seen.value ?? null,
    request: turn.request.value ?? null,
    result: turn.result.value ?? null,
    messages: turn.messages.value ?? null,
    calls: turn.calls.value ?? null,
    approvals: turn.approvals.value ?? null,
  };
}

/** What submits the same message again. @param {any} request */
function bodyOf(request) {
  return { session_id: request.session_id, user_message: request.user_message, ...(request.brain ? { brain: request.brain } : {}), ...(request.metadata ? { metadata: request.metadata } : {}) };
}

/** A shell's command: what was said stands in single quotes, in which a shell reads nothing. @param {any} request @param {string} address */
export function curlOf(request, address) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    `curl ${quoted(address)}`,
    `  -H 'Content-Type: application/json'`,
    `  -H "Authorization: Bearer $BRAINQ_TOKEN"`,
    `  -d ${quoted(JSON.stringify(bodyOf(request)))}`,
  ].join(" \\\n");
}

/** Strings of JSON are Python's, too. @param {any} request */
export function pythonOf(request) {
  const { session_id: session, user_message: message, ...options } = bodyOf(request);
  const more = Object.entries(options).map(([name, value]) => `, ${name}=${pythonValue(value)}`);
  return [
    "from brainq import Client",
    "",
    "with Client() as client:",
    `    handle = client.submit(${pythonValue(session)}, ${pythonValue(message)}${more.join("")})`,
    "    print(handle.result().text)",
    "",
  ].join("\n");
}

/** @param {any} value @returns {string} */
function pythonValue(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
