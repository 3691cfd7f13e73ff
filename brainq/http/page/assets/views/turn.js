/** One turn: what it does, why it waits, what was said, what it cost, and what a person may do to it. */

import { ask, enc } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago, duration, now } from "../core/when.js";
import { dollars, firstLine } from "../core/words.js";
import { finalStepsOf, pastRows } from "../live/past.js";
import { rowsOf } from "../live/rows.js";
import { watchTurn } from "../live/watch.js";
import { action } from "../parts/action.js";
import { costs, decision, finalizerSteps, warnings } from "../parts/after.js";
import { approvalCards } from "../parts/approval_card.js";
import { badge, figure, idOf, loading, refusal } from "../parts/bits.js";
import { composer } from "../parts/composer.js";
import { conversation } from "../parts/conversation.js";
import { unifiedDiff } from "../parts/diff.js";
import { messageId, receipts } from "../parts/receipts.js";
import { timeline } from "../parts/timeline.js";
import { turnActions } from "../parts/turn_actions.js";

const GROW_MS = 250;

/** @type {import("../main.js").MakeView} */
export function turnView(place, update) {
  const turnId = place.path[1] ?? "";
  const turn = watchTurn(turnId, changed);
  const next = source((signal) => ask("GET", `v1/turns/${enc(turnId)}/explain`, { signal }), update, { least: 900, every: 2_500 });
  const sent = receipts(turnId, update);
  const steering = action(update);
  const actions = turnActions(turn, update);
  const approval = approvalCards(update, () => turn.refresh());
  /** @type {Set<string>} calls that are shown whole */
  const opened = new Set(place.query.call ? [place.query.call] : []);
  let toShow = place.query.call ?? "";
  let draftId = messageId("page");
  const chosen = { at: "", showTable: false };
  // Bars grow while the turn runs; who wants no motion sees them once a second.
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

  /** @param {string} call */
  function openCall(call) {
    opened.add(call);
    toShow = call;
    go(link(["turns", turnId], { call }), true);
    update();
  }

  function showCall() {
    if (!toShow || !document.getElementById(`call-${toShow}`)) return;
    const found = document.getElementById(`call-${toShow}`);
    toShow = "";
    found?.scrollIntoView({ block: "nearest" });
    found?.querySelector("summary")?.focus({ preventScroll: true });
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
    queueMicrotask(showCall);
    const result = turn.result.value;
    const { events } = turn;
    const finalSteps = finalStepsOf(turn.past.value);
    const snapshot = told.snapshot;
    const lanes = Object.fromEntries((snapshot?.trace ?? []).map((/** @type {any} */ call) => [call.call_id, call.lanes]));
    const message = (turn.messages.value ?? []).find((/** @type {any} */ one) => one.role === "user")?.content ?? "";
    return [
      h(
        "div",
        { class: "turn-head" },
        h("div", { class: "turn-title" }, h("h1", { title: message }, firstLine(message) || `Turn ${turnId}`), actions.bar()),
        h(
          "p",
          { class: "subline" },
          badge(turn.state),
          turn.events.cancelling !== null && !turn.isOver ? h("span", { class: "muted" }, "a cancel was asked for") : null,
          h("a", { href: link(["sessions", told.session_id]) }, told.session_id),
          idOf(turnId, "turn's id"),
          snapshot?.brain ? h("span", { class: "muted" }, `brain ${snapshot.brain}`) : null,
          events.from ? h("span", { class: "muted" }, "began ", ago(events.from)) : null,
          streamWord(turn),
        ),
      ),
      nextStrip(),
      actions.holds(),
      warnings(result),
      figures(snapshot, result, events),
      drawn(events, finalSteps, lanes),
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "panel talk", key: "talk" },
          h("h2", null, "Conversation"),
          turn.messages.problem?.status === 410 ? h("p", { class: "muted" }, turn.messages.problem.message) : null,
          h("div", { class: "messages" }, conversation(turn, { opened, update, approval })),
          sent.render(),
          turn.isOver || turn.state === "closing"
            ? h("p", { class: "muted" }, h("a", { href: link(["sessions", told.session_id]) }, "Go on in its session"))
            : composer({
                id: "steer",
                label: "Say something to the turn while it runs",
                placeholder: "The red ones, please.",
                name: "Steer",
                outcome: steering.outcome,
                send: steer,
              }),
        ),
        h("div", { class: "aside" }, changes(result, events), costs(result, events.steps), finalizerSteps(finalSteps, actions), decision(turn.decided.value), citations(result)),
      ),
    ];
  }

  function nextStrip() {
    const text = next.value?.next ?? "";
    return h(
      "div",
      { class: "strip next", role: "status", key: "next", "data-tone": turn.state },
      h("strong", null, turn.isOver ? "It ended" : "Now and next"),
      h("span", null, text || (next.problem && !next.problem.passes ? next.problem.message : "…")),
    );
  }

  /** @param {import("../live/fold.js").Turn} events @param {import("../live/rows.js").FinalStep[]} finalSteps @param {Record<string, string[]>} lanes */
  function drawn(events, finalSteps, lanes) {
    const past = turn.past.value;
    const choose = (/** @type {object} */ picked) => (Object.assign(chosen, picked), update());
    if (events.seq) {
      const waits = events.parks.map((park) => ({ from: park.from, to: park.to ?? now() }));
      return timeline(rowsOf(events, now(), { lanes, finalSteps }), { from: events.from, now: now(), isOver: turn.isOver, waits }, chosen, choose, openCall);
    }
    if (turn.stream === "gone" && past?.bars.length) {
      const { rows, waits } = pastRows(past);
      return timeline(rows, { from: past.began_at_ms, now: now(), isOver: true, waits }, chosen, choose, openCall);
    }
    return h("section", { class: "timeline away", key: "timeline", "aria-label": "Timeline" }, h("p", { class: "muted" }, "Nothing has happened yet."));
  }

  return {
    title: () => firstLine((turn.messages.value ?? []).find((/** @type {any} */ one) => one.role === "user")?.content ?? "", 60) || `Turn ${turnId}`,
    render,
    go(to) {
      if (to.query.call && !opened.has(to.query.call)) openCall(to.query.call);
    },
    stop() {
      clearInterval(growing);
      turn.stop();
      next.stop();
      sent.stop();
    },
  };
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
  const parked = (result?.parked_ms ?? snapshot?.parked_ms ?? 0) + (isOver ? 0 : openWait(events));
  const of = (/** @type {number | null | undefined} */ most) => (most ? ` of ${most.toLocaleString("en")}` : "");
  return h(
    "dl",
    { class: "figures", key: "figures" },
    figure(isOver ? "Took" : "Runs for", duration(ran)),
    figure("Steps", `${result?.steps ?? budget?.steps_used ?? events.steps.length}${of(budget?.steps_max)}`),
    figure("Calls", `${result?.tool_calls ?? budget?.tool_calls_used ?? 0}${of(budget?.tool_calls_max)}`),
    figure("Tokens", `${(tokens ?? 0).toLocaleString("en")}${of(budget?.tokens_max)}`, result ? `${result.input_tokens} in, ${result.output_tokens} out` : undefined),
    figure("Cost", dollars(result ? result.cost_usd : (budget?.cost_usd ?? 0)) + (budget?.cost_max_usd ? ` of ${dollars(budget.cost_max_usd)}` : "")),
    figure("Parked", parked ? duration(parked) : "not at all", "How long it waited for people and outside results; no part of its time limit"),
    isOver ? null : figure("Time left", events.state === "parked" ? "stands still" : events.deadlineAt ? duration(events.deadlineAt - now()) : "–"),
  );
}

/** @param {import("../live/fold.js").Turn} events */
function openWait(events) {
  const open = events.parks.find((park) => park.to === null);
  return open ? now() - open.from : 0;
}

/** @param {any} result @param {import("../live/fold.js").Turn} events */
function changes(result, events) {
  const diff = events.diff || result?.diff;
  return diff ? h("section", { class: "panel", key: "changes" }, h("h2", null, "What it changed"), unifiedDiff(diff, "What it changed")) : null;
}

/** @param {any} result */
function citations(result) {
  const all = [...(result?.local_citations ?? []), ...(result?.web_citations ?? [])];
  return all.length
    ? h("section", { class: "panel", key: "citations" }, h("h2", null, "Sources"), h("ul", null, all.map((one) => h("li", { key: one.source, title: one.quote }, one.title ? `${one.title} · ` : "", h("span", { class: "mono" }, one.source)))))
    : null;
}

/** @param {import("../core/api.js").Problem} problem */
function absent(problem) {
  return h("section", null, h("h1", null, "This turn cannot be shown"), refusal(problem), h("p", null, h("a", { href: "#/turns" }, "All turns")));
}
