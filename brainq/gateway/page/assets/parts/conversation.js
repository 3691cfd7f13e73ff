/** A turn's conversation: messages in order, calls with arguments and results, and the text as it streams. */

import { h } from "../core/dom.js";
import { copyButton } from "./copy.js";
import { files } from "./files.js";
import { markdown } from "./markdown.js";
import { callCards } from "./one_call.js";

/**
 * @typedef {import("../live/watch.js").Watched} Watched
 * @typedef {import("../core/dom.js").Loose} Loose
 * @typedef {import("./one_call.js").Ways} Ways
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
      const asked = (message.calls ?? []).map((/** @type {any} */ call) => calls.get(call.id) ?? { call_id: call.id, tool: call.name, arguments: call.arguments, status: "planned" });
      for (const call of asked) named.add(call.call_id);
      shown.push(
        h(
          "section",
          { class: "step", key: `step ${index}`, id: message.step ? `step-${message.step}` : undefined, tabindex: "-1", "aria-label": message.step ? `Step ${message.step}` : undefined },
          message.content.trim() ? modelSaid(message.content, `said ${index}`) : null,
          callCards(turn, asked, ways),
        ),
      );
    } else if (message.role === "system" && message.content) shown.push(note(message.content, `system ${index}`));
  }
  // Calls that are not in the transcript yet: those of a step that has just ended, and those before the first step.
  const unnamed = [...calls.values()].filter((call) => !named.has(call.call_id));
  const opening = callCards(turn, unnamed.filter((call) => call.step === 0), ways);
  const newest = callCards(turn, unnamed.filter((call) => call.step !== 0), ways);
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
    { class: "message user", key: `user ${index}`, "aria-label": isInput ? "Input during the turn" : "The user" },
    h("header", null, isInput ? "Input during the turn" : "User"),
    message.content ? h("div", { class: "prose plain", dir: "auto" }, message.content) : null,
    files(turn.turnId, message.attachments),
  );
}

/** @param {string} text @param {string} key @param {boolean} [isLive] */
function modelSaid(text, key, isLive = false) {
  return h(
    "article",
    { class: "message model", key, "aria-label": "The model", "data-live": isLive ? "yes" : "no" },
    h("header", null, "Model", isLive ? h("span", { class: "muted" }, " · writing") : copyButton(text, "answer")),
    markdown(text),
  );
}

/** What the model thought, folded. @param {string} text @param {string} key */
function thought(text, key) {
  return text.trim() ? h("details", { class: "thought", key }, h("summary", null, "Reasoning"), h("div", { class: "prose plain", dir: "auto" }, text)) : null;
}

/** @param {string} text @param {string} key */
function note(text, key) {
  return h("article", { class: "message note", key }, h("div", { class: "prose plain", dir: "auto" }, text));
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
  return h("p", { class: "thinking", key: "thinking" }, retry ? `The model failed (${retry.kind}) and is being called again, try ${step.retries.length + 1}.` : step.thought ? "The model is thinking…" : "Waiting for the model…");
}
