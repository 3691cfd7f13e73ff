/** A call of a turn: its arguments, result and state, and why it failed or was refused. */

import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { duration, now } from "../core/when.js";
import { PARKED_FOR, counted, firstLine } from "../core/words.js";
import { FOLDED_FROM, runs } from "../live/folded.js";
import { badge, toneBadge } from "./bits.js";
import { changeOf } from "./change.js";
import { files } from "./files.js";
import { block, inLine } from "./json.js";

/**
 * @typedef {import("../live/watch.js").Watched} Watched
 * @typedef {import("../core/dom.js").Loose} Loose
 * @typedef {{opened: Set<string>, update: () => void, approval?: (approval: any, where: {inTurn: boolean}) => Loose,
 *   children?: Map<string, {turn_id: string, state: string}>}} Ways `children`: the turns that calls started
 */

const SHOWN = 3; // of many equal calls, before one asks for the rest
const BAD = ["failed", "timed_out", "timed_out_late", "unknown", "denied"];

/** In order; of many that went well with one tool a few are shown, and the rest when asked for. @param {Watched} turn @param {any[]} calls @param {Ways} ways @returns {Loose[]} */
export function callCards(turn, calls, ways) {
  return runs(calls, (call) => (call.status === "completed" ? call.tool : "")).flatMap((group) => {
    const key = `all ${group[0]?.call_id}`;
    if (group.length < FOLDED_FROM) return group.map((call) => oneCall(turn, call, ways));
    const isWhole = ways.opened.has(key) || group.slice(SHOWN).some((call) => ways.opened.has(call.call_id));
    const open = () => {
      if (!ways.opened.delete(key)) ways.opened.add(key);
      ways.update();
    };
    const rest = group.length - SHOWN;
    return [
      ...(isWhole ? group : group.slice(0, SHOWN)).map((call) => oneCall(turn, call, ways)),
      h("button", { class: "quiet more-calls", type: "button", "aria-expanded": String(isWhole), onclick: open, key }, isWhole ? `Show fewer ${group[0].tool} calls` : `Show ${counted(rest, `more ${group[0].tool} call`)}, all completed`),
    ];
  });
}

/** @param {Watched} turn @param {any} call @param {Ways} ways */
function oneCall(turn, call, { opened, update, approval, children }) {
  const isOpen = opened.has(call.call_id);
  const asked = (turn.approvals.value ?? []).find((/** @type {any} */ one) => one.call_id === call.call_id);
  // The events know of a decision first.
  const ask = asked && { ...asked, state: turn.events.asked[call.call_id]?.decision || asked.state };
  const child = children?.get(call.call_id);
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
        standing(call, ask),
        h("span", { class: "number took" }, took(call)),
      ),
      isOpen ? insides(turn, call, update) : null,
    ),
    child ? h("p", { class: "child-link", key: "child" }, "Child turn ", h("a", { href: link(["turns", child.turn_id]) }, child.turn_id), " ", badge(child.state)) : null,
    why(call, ask),
    ask && approval && ask.state === "pending" ? approval(ask, { inTurn: true }) : null,
    ask && ask.state === "approved" && isOpen ? h("p", { class: "muted" }, `Approved${ask.edited ? " with other arguments" : ""}${ask.decided_by ? ` by ${ask.decided_by}` : ""}${ask.comment ? `: ${ask.comment}` : ""}`) : null,
  );
}

/** A call that a rule refused is not shown as one that a person denied. @param {any} call @param {any} ask */
function standing(call, ask) {
  if (call.park) return toneBadge("park", PARKED_FOR[call.park] ?? call.park);
  if (call.status === "denied" && ask?.state !== "denied") return toneBadge("bad", ask?.state === "expired" ? "approval expired" : "blocked by a rule");
  return badge(call.status);
}

/** Why it failed or did not run, in a line that needs no opening. @param {any} call @param {any} ask */
function why(call, ask) {
  if (!BAD.includes(call.status)) return null;
  const text = reasonOf(call, ask);
  return text ? h("p", { class: "call-error", key: "why", dir: "auto" }, text) : null;
}

/** @param {any} call @param {any} ask */
export function reasonOf(call, ask) {
  if (call.status === "denied" && ask?.state === "denied") return `Denied${ask.decided_by ? ` by ${ask.decided_by}` : ""}${ask.comment ? `: ${ask.comment}` : ""}`;
  const said = typeof call.result === "string" ? firstLine(errorOf(call.result), 240) : "";
  return said || call.detail || "";
}

/** A result that is JSON with an error in it says that error. @param {string} result */
function errorOf(result) {
  try {
    const told = JSON.parse(result);
    const error = told?.error ?? told?.reason ?? told?.message;
    return typeof error === "string" ? error : typeof error?.message === "string" ? error.message : result;
  } catch {
    return result;
  }
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
