/** What was said and done in a turn: messages in order, calls with what they were given and gave, the text as it streams. */

import { h } from "../core/dom.js";
import { duration, now } from "../core/when.js";
import { PARKED_FOR } from "../core/words.js";
import { badge } from "./bits.js";
import { changeOf } from "./change.js";
import { files } from "./files.js";
import { block, inLine } from "./json.js";
import { markdown } from "./markdown.js";

/**
 * @typedef {import("../live/watch.js").Watched} Watched
 * @typedef {import("../core/dom.js").Loose} Loose
 * @typedef {{opened: Set<string>, update: () => void, approval?: (approval: any, where: {inTurn: boolean}) => Loose}} Ways
 */

/** @param {Watched} turn @param {Ways} ways @returns {Loose[]} */
export function conversation(turn, ways) {
  /** @type {any[]} */
  const messages = turn.messages.value ?? [];
  const calls = callsById(turn);
  /** @type {Loose[]} */
  const shown = [];
  const named = new Set();
  for (const [index, message] of messages.entries()) {
    if (message.extra?.note) shown.push(note(message.content, `note ${index}`));
    else if (message.role === "user") shown.push(userSaid(turn, message, index));
    else if (message.role === "assistant") {
      shown.push(thought((message.reasoning ?? []).map((/** @type {any} */ one) => one.text).join("\n\n"), `thought ${index}`));
      if (message.content.trim()) shown.push(modelSaid(message.content, `said ${index}`));
      for (const call of message.calls ?? []) {
        named.add(call.id);
        shown.push(oneCall(turn, calls.get(call.id) ?? { call_id: call.id, tool: call.name, arguments: call.arguments, status: "planned" }, ways));
      }
    } else if (message.role === "system" && message.content) shown.push(note(message.content, `system ${index}`));
  }
  // Calls that the transcript does not name yet: those of a step that has only just ended, and what came before the first.
  const unnamed = [...calls.values()].filter((call) => !named.has(call.call_id));
  const opening = unnamed.filter((call) => call.step === 0).map((call) => oneCall(turn, call, ways));
  const newest = unnamed.filter((call) => call.step !== 0).map((call) => oneCall(turn, call, ways));
  const after = messages.findIndex((message) => message.role !== "user");
  shown.splice(after < 0 ? shown.length : after, 0, ...opening);
  return [...shown, ...newest, live(turn, messages)];
}

/** By its own route, and sooner by the events. @param {Watched} turn @returns {Map<string, any>} */
function callsById(turn) {
  const found = new Map((turn.calls.value ?? []).map((/** @type {any} */ call) => [call.call_id, call]));
  for (const call of Object.values(turn.events.calls)) {
    const known = found.get(call.id);
    const newest = { status: call.status, latency_ms: call.latencyMs, detail: call.detail, park: openPark(call) };
    if (!known) found.set(call.id, { call_id: call.id, tool: call.tool, effect: call.effect, step: call.step, ...newest });
    else if (known.status !== call.status && call.status !== "planned") found.set(call.id, { ...known, ...newest });
  }
  return found;
}

/** @param {import("../live/fold.js").Call} call */
function openPark(call) {
  const last = call.spans.at(-1);
  return last?.phase === "parked" && last.to === null ? last.why : "";
}

/** @param {Watched} turn @param {any} message @param {number} index */
function userSaid(turn, message, index) {
  const isInput = Boolean(message.extra?.input);
  return h(
    "article",
    { class: "message user", key: `user ${index}`, "aria-label": isInput ? "Input while it ran" : "The user" },
    h("header", null, isInput ? "Input while it ran" : "User"),
    message.content ? h("div", { class: "prose plain" }, message.content) : null,
    files(turn.turnId, message.attachments),
  );
}

/** @param {string} text @param {string} key @param {boolean} [isLive] */
function modelSaid(text, key, isLive = false) {
  return h(
    "article",
    { class: "message model", key, "aria-label": "The model", "data-live": isLive ? "yes" : "no" },
    h("header", null, "Model", isLive ? h("span", { class: "muted" }, " · writing") : null),
    markdown(text),
  );
}

/** What the model thought, folded. @param {string} text @param {string} key */
function thought(text, key) {
  return text.trim() ? h("details", { class: "thought", key }, h("summary", null, "What it thought"), h("div", { class: "prose plain" }, text)) : null;
}

/** @param {string} text @param {string} key */
function note(text, key) {
  return h("article", { class: "message note", key }, h("div", { class: "prose plain" }, text));
}

/** The newest step's thoughts and text, until the transcript has it. @param {Watched} turn @param {any[]} messages */
function live(turn, messages) {
  const step = turn.events.steps.at(-1);
  if (!step || messages.some((message) => message.role === "assistant" && message.step === step.step)) return null;
  if (turn.isOver && !turn.messages.value && !turn.messages.problem) return null; // it comes as a whole
  return [thought(step.thought, "live thought"), step.text.trim() ? modelSaid(step.text, "live", step.to === null) : asking(turn, step)];
}

/** @param {Watched} turn @param {import("../live/fold.js").Step} step */
function asking(turn, step) {
  if (turn.isOver || step.to !== null) return null;
  const retry = step.retries.at(-1);
  return h("p", { class: "thinking", key: "thinking" }, retry ? `The model failed (${retry.kind}) and is asked again.` : step.thought ? "The model thinks…" : "The model is asked…");
}

/** @param {Watched} turn @param {any} call @param {Ways} ways */
function oneCall(turn, call, { opened, update, approval }) {
  const isOpen = opened.has(call.call_id);
  const asked = (turn.approvals.value ?? []).find((/** @type {any} */ one) => one.call_id === call.call_id);
  // The events know of a decision first.
  const ask = asked && { ...asked, state: turn.events.asked[call.call_id]?.decision || asked.state };
  const toggle = (/** @type {Event} */ event) => {
    const isNow = /** @type {HTMLDetailsElement} */ (event.target).open;
    if (isNow === opened.has(call.call_id)) return;
    if (isNow) opened.add(call.call_id);
    else opened.delete(call.call_id);
    update();
  };
  return h(
    "div",
    { class: "call", key: `call ${call.call_id}`, id: `call-${call.call_id}`, "data-status": call.status },
    h(
      "details",
      { open: isOpen, ontoggle: toggle },
      h(
        "summary",
        null,
        h("span", { class: "tool" }, call.tool || call.call_id),
        h("span", { class: "given" }, inLine(call.arguments)),
        call.park ? h("span", { class: "badge", "data-tone": "park" }, h("span", { class: "dot", "aria-hidden": "true" }), PARKED_FOR[call.park] ?? call.park) : badge(call.status),
        h("span", { class: "number took" }, took(call)),
      ),
      isOpen ? insides(turn, call, update) : null,
    ),
    ask && approval && ask.state === "pending" ? approval(ask, { inTurn: true }) : null,
    ask && ask.state !== "pending" && isOpen ? h("p", { class: "muted" }, `${ask.state}${ask.edited ? ", with other arguments" : ""}${ask.decided_by ? ` by ${ask.decided_by}` : ""}${ask.comment ? `: ${ask.comment}` : ""}`) : null,
  );
}

/** @param {Watched} turn @param {any} call @param {() => void} update */
function insides(turn, call, update) {
  const facts = [call.call_id, call.effect?.replaceAll("_", " "), call.step ? `step ${call.step}` : "before the first step", call.attempt > 1 ? `attempt ${call.attempt}` : "", call.detail].filter(Boolean);
  return h(
    "div",
    { class: "insides" },
    h("p", { class: "muted" }, facts.join(" · ")),
    call.is_kept === false ? h("p", { class: "muted" }, "Its content is not kept.") : null,
    call.arguments === null || call.arguments === undefined ? null : [h("h4", null, "Arguments"), block(call.arguments, `Arguments of ${call.call_id}`, update), changeOf(call.arguments, `What ${call.call_id} changes`)],
    call.result === null || call.result === undefined ? null : [h("h4", null, call.is_error ? "Result, an error" : "Result"), block(call.result, `Result of ${call.call_id}`, update)],
    files(turn.turnId, call.attachments),
  );
}

/** @param {any} call */
function took(call) {
  if (call.latency_ms) return duration(call.latency_ms);
  if (call.status === "running" && call.started_at_ms) return `${duration(now() - call.started_at_ms)} so far`;
  return "";
}
