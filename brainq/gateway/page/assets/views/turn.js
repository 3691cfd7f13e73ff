/** A turn: its state, messages, calls and costs, and the actions that a person can take. */

import { ask, enc } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago, duration, now } from "../core/when.js";
import { dollars, firstLine } from "../core/words.js";
import { askForBrains } from "../live/brains.js";
import { costOf, parkedFor, timeLeft } from "../live/figures.js";
import { standingOf } from "../live/next.js";
import { finalStepsOf, pastRows } from "../live/past.js";
import { rowsOf } from "../live/rows.js";
import { watchTurn } from "../live/watch.js";
import { action } from "../parts/action.js";
import { changes, citations, costs, decision, finalizerSteps, warnings } from "../parts/after.js";
import { approvalCards } from "../parts/approval_card.js";
import { figure, idOf, loading, refusal, turnBadge } from "../parts/bits.js";
import { composer } from "../parts/composer.js";
import { conversation } from "../parts/conversation.js";
import { rawJson, sharing } from "../parts/sharing.js";
import { messageId, receipts } from "../parts/receipts.js";
import { timeline } from "../parts/timeline.js";
import { turnActions } from "../parts/turn_actions.js";
import { unknownIn, unknownWrites } from "../parts/unknown_writes.js";

const GROW_MS = 250;
const STEPS_LISTED = 4; // from so many on there is a list to jump by

/** @type {import("../main.js").MakeView} */
export function turnView(place, update) {
  const turnId = place.path[1] ?? "";
  const turn = watchTurn(turnId, changed);
  const next = source((signal) => ask("GET", `v1/turns/${enc(turnId)}/explain`, { signal }), update, { least: 900, every: 2_500 });
  const sent = receipts(turnId, update);
  const steering = action(update);
  const actions = turnActions(turn, update);
  const shared = sharing(turn, update);
  const approval = approvalCards(update, () => turn.refresh());
  askForBrains(update); // their tools' descriptions
  /** @type {Set<string>} calls that are shown whole */
  const opened = new Set(place.query.call ? [place.query.call] : []);
  let toShow = anchorOf(place.query);
  let draftId = messageId("page");
  /** @type {import("../parts/timeline.js").Chosen} */
  const chosen = { at: "", showTable: false, zoom: 1, isUnfolded: false };
  // Bars grow while the turn runs, or once a second for people who prefer reduced motion.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const growing = setInterval(() => !turn.isOver && !still.matches && !document.hidden && update(), GROW_MS);
  let lastKind = "";

  function changed() {
    const kind = `${turn.state} ${turn.events.seq - Number(turn.events.steps.at(-1)?.to === null)}`;
    if (turn.isOver) next.refresh();
    else if (kind !== lastKind) next.refresh();
    lastKind = kind;
    update();
  }

  /** @param {Record<string, string>} query `call` or `step` */
  function jump(query) {
    if (query.call) opened.add(query.call);
    toShow = anchorOf(query);
    go(link(["turns", turnId], query), true);
    update();
  }

  /** @param {import("../live/rows.js").Bar} bar */
  function openBar(bar) {
    if (bar.call) jump({ call: bar.calls?.[0] ?? bar.call });
    else if (bar.step) jump({ step: String(bar.step) });
  }

  function showPlace() {
    const found = toShow ? document.getElementById(toShow) : null;
    if (!found) return;
    toShow = "";
    found.scrollIntoView({ block: "nearest" });
    (found.querySelector(":scope > details > summary") ?? found).focus?.({ preventScroll: true });
  }

  /** @param {string} text */
  async function steer(text) {
    const done = await steering.run(async () => {
      await sent.send(text, draftId);
    });
    if (done) draftId = messageId("page");
    return done;
  }

  function render() {
    const told = turn.seen.value;
    if (!told) return [turn.seen.problem ? absent(turn.seen.problem) : loading(12)];
    queueMicrotask(showPlace);
    const result = turn.result.value;
    const { events } = turn;
    const finalSteps = finalStepsOf(turn.past.value);
    const snapshot = told.snapshot;
    const lanes = Object.fromEntries((snapshot?.trace ?? []).map((/** @type {any} */ call) => [call.call_id, call.lanes]));
    const message = messageOf();
    const request = turn.request.value;
    const unknown = unknownIn(turn.calls.value);
    return [
      h(
        "div",
        { class: "turn-head" },
        h("div", { class: "turn-title" }, h("h1", { title: message, dir: "auto" }, firstLine(message) || `Turn ${turnId}`), h("div", { class: "actions" }, actions.bar(), shared.menu())),
        h(
          "p",
          { class: "subline" },
          turnBadge(turn.state, result?.stop_reason ?? (events.stopReason || snapshot?.stop_reason), unknown.length),
          turn.events.cancelling !== null && !turn.isOver ? h("span", { class: "muted" }, "cancelling") : null,
          h("a", { href: link(["sessions", told.session_id]) }, told.session_id),
          idOf(turnId, "turn's id"),
          snapshot?.brain || request?.brain ? h("span", { class: "muted" }, `brain ${snapshot?.brain ?? request.brain}`) : null,
          events.from ? h("span", { class: "muted" }, "began ", ago(events.from)) : null,
          request?.parent ? h("span", { class: "muted" }, "child of ", h("a", { href: link(["turns", request.parent.turn_id], { call: request.parent.call_id }) }, `turn ${request.parent.turn_id}`)) : null,
          streamWord(turn),
        ),
      ),
      unknownWrites(unknown, told, turn.isOver || turn.state === "closing"),
      nextStrip(unknown.length > 0),
      actions.holds(),
      warnings(result ? { warnings: result.warnings } : null),
      figures(snapshot, result, events),
      drawn(events, finalSteps, lanes),
      shared.isRaw() ? rawJson(turn, update) : null,
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "panel talk", key: "talk" },
          h("div", { class: "panel-head" }, h("h2", null, "Conversation"), stepList()),
          turn.messages.problem?.status === 410 ? h("p", { class: "muted" }, turn.messages.problem.message) : null,
          h("div", { class: "messages" }, conversation(turn, { opened, update, approval, children: turn.childrenByCall() })),
          sent.render(),
          turn.isOver || turn.state === "closing"
            ? h("p", { class: "muted" }, h("a", { href: link(["sessions", told.session_id]) }, "Go on in its session"))
            : composer({
                id: "steer",
                label: "Message the running turn",
                placeholder: "The red ones, please.",
                name: "Steer",
                outcome: steering.outcome,
                send: steer,
              }),
        ),
        h("div", { class: "aside" }, changes(result, events), costs(result, events.steps, turn.isOver), finalizerSteps(finalSteps, actions), decision(turn.decided.value), citations(result)),
      ),
    ];
  }

  function messageOf() {
    return (turn.messages.value ?? []).find((/** @type {any} */ one) => one.role === "user")?.content || turn.request.value?.user_message || "";
  }

  /** A menu of the steps of a long turn. */
  function stepList() {
    const steps = (turn.messages.value ?? []).filter((/** @type {any} */ one) => one.role === "assistant" && one.step);
    if (steps.length < STEPS_LISTED) return null;
    const pick = (/** @type {Event} */ event) => {
      const field = /** @type {HTMLSelectElement} */ (event.target);
      if (field.value) jump({ step: field.value });
      field.value = "";
    };
    return h(
      "select",
      { class: "jump", "aria-label": "Go to a step", value: "", onchange: pick },
      h("option", { value: "", key: "none" }, "Go to step…"),
      steps.map((/** @type {any} */ one) => h("option", { value: String(one.step), key: one.step }, `${one.step}${one.calls?.length ? ` · ${one.calls.map((/** @type {any} */ call) => call.name).slice(0, 3).join(", ")}` : " · answer"}`)),
    );
  }

  /** @param {boolean} isUncertain a write may have happened: that it ended is not shown as a success */
  function nextStrip(isUncertain) {
    const finalizerStep = turn.seen.value?.snapshot?.finalizer_step ?? "";
    const known = { snapshot: turn.seen.value?.snapshot, result: turn.result.value, approvals: turn.approvals.value, finalizerStep };
    const { title, text, tone, detail } = standingOf(turn.state, turn.events, known, now());
    // The API's own sentence, if it has more to say, such as a command that helps.
    const sentence = turn.isOver ? "" : (next.value?.next ?? "");
    const told = !text || sentence.includes("`") ? sentence : "";
    const problem = next.problem && !next.problem.passes ? next.problem.message : "";
    return h(
      "div",
      { class: "strip next", role: "status", key: "next", "data-tone": isUncertain && tone === "good" ? "off" : tone, title: sentence || undefined },
      h("strong", null, title),
      " ",
      h("span", { dir: "auto" }, text || problem || (told ? "" : "…")),
      detail ? h("small", { class: "muted machine", dir: "auto" }, detail) : null,
      told ? h(text ? "small" : "span", { class: text ? "muted machine" : "" }, told) : null,
    );
  }

  /** @param {import("../live/fold.js").Turn} events @param {import("../live/rows.js").FinalStep[]} finalSteps @param {Record<string, string[]>} lanes */
  function drawn(events, finalSteps, lanes) {
    const past = turn.past.value;
    const { isUnfolded } = chosen;
    const choose = (/** @type {object} */ picked) => (Object.assign(chosen, picked), update());
    if (events.seq) {
      const at = now();
      const waits = events.parks.map((park) => ({ from: park.from, to: park.to ?? at }));
      return timeline(rowsOf(events, at, { lanes, finalSteps, isUnfolded }), { from: events.from, now: at, isOver: turn.isOver, waits }, chosen, choose, openBar);
    }
    if (turn.stream === "gone" && past?.bars.length) {
      const { rows, waits } = pastRows(past, isUnfolded);
      return timeline(rows, { from: past.began_at_ms, now: now(), isOver: true, waits }, chosen, choose, openBar);
    }
    return h("section", { class: "timeline away", key: "timeline", "aria-label": "Timeline" }, h("p", { class: "muted" }, turn.isOver ? "It ended before anything ran." : "Nothing has run yet."));
  }

  return {
    title: () => firstLine(messageOf(), 60) || `Turn ${turnId}`,
    render,
    go(to) {
      if (to.query.call && !opened.has(to.query.call)) jump({ call: to.query.call });
    },
    stop() {
      clearInterval(growing);
      turn.stop();
      next.stop();
      sent.stop();
    },
  };
}

/** The element that an address leads to. @param {Record<string, string>} query */
function anchorOf({ call, step }) {
  return call ? `call-${call}` : step ? `step-${step}` : "";
}

/** @param {import("../live/watch.js").Watched} turn */
function streamWord(turn) {
  if (turn.isOver || turn.stream === "over" || turn.stream === "gone") return null;
  if (turn.stream === "refused") return h("span", { class: "stream", "data-stream": "refused" }, turn.streamProblem?.message ?? "not followed");
  const words = { connecting: "connecting", live: "live", waiting: "reconnecting" };
  return h("span", { class: "stream", "data-stream": turn.stream, role: "status" }, words[/** @type {"live"} */ (turn.stream)]);
}

/** @param {any} snapshot @param {any} result @param {import("../live/fold.js").Turn} events */
function figures(snapshot, result, events) {
  const budget = snapshot?.budget;
  const isOver = Boolean(events.endedAt || result);
  const ran = isOver ? (result?.elapsed_ms ?? events.elapsedMs) : events.from ? now() - events.from : 0;
  const tokens = result ? result.input_tokens + result.output_tokens : budget?.tokens_used;
  const parked = parkedFor(events, result ?? snapshot, now());
  const left = timeLeft(events, now());
  const of = (/** @type {number | null | undefined} */ most) => (most ? ` of ${most.toLocaleString("en")}` : "");
  return h(
    "dl",
    { class: "figures", key: "figures" },
    figure(isOver ? "Took" : "Running for", duration(ran), "From its beginning, including waits"),
    figure("Steps", `${result?.steps ?? budget?.steps_used ?? events.steps.length}${of(budget?.steps_max)}`),
    figure("Calls", `${result?.tool_calls ?? budget?.tool_calls_used ?? 0}${of(budget?.tool_calls_max)}`),
    figure("Tokens", `${(tokens ?? 0).toLocaleString("en")}${of(budget?.tokens_max)}`, result ? `${result.input_tokens} in, ${result.output_tokens} out` : undefined),
    figure("Cost", dollars(costOf(result, budget)) + (budget?.cost_max_usd ? ` of ${dollars(budget.cost_max_usd)}` : "")),
    figure("Parked", parked ? duration(parked) : "none", "The time that it waited for people and outside results, which does not count against its time limit"),
    isOver ? null : figure("Time left", left ? `${duration(left.ms)}${left.isPaused ? ", paused" : ""}` : "–", left?.isPaused ? "The time limit is paused while the turn waits for people or outside results" : undefined),
  );
}

/** @param {import("../core/api.js").Problem} problem */
function absent(problem) {
  return h("section", null, h("h1", null, "This turn cannot be shown"), refusal(problem), h("p", null, h("a", { href: "#/turns" }, "All turns")));
}
