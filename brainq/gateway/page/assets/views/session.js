/** A session as a chat: its messages, the running turn as it streams, the waiting turns, and a message field. */

import { ask, enc } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago } from "../core/when.js";
import { counted, isOver } from "../core/words.js";
import { askForBrains, knownBrains } from "../live/brains.js";
import { watchTurn } from "../live/watch.js";
import { action, actionButton, said } from "../parts/action.js";
import { warnings } from "../parts/after.js";
import { approvalCards } from "../parts/approval_card.js";
import { badge, loading, refusal, turnBadge } from "../parts/bits.js";
import { composer } from "../parts/composer.js";
import { conversation } from "../parts/conversation.js";
import { files } from "../parts/files.js";
import { markdown } from "../parts/markdown.js";
import { newChatButton } from "../parts/new_chat.js";
import { pastCalls } from "../parts/past_calls.js";
import { messageId, receipts } from "../parts/receipts.js";

const PAGE = 30;
const NEAR_PX = 120;

/** @type {import("../main.js").MakeView} */
export function sessionView(place, update) {
  const sessionId = place.path[1] ?? "";
  const at = `v1/sessions/${enc(sessionId)}`;
  const seen = source((signal) => ask("GET", at, { signal }), changed, { every: 2_000 });
  const history = source(async (signal) => (await ask("GET", `${at}/history?limit=${PAGE}`, { signal })).turns, changed, { every: 4_000 });
  const sending = action(update);
  const acting = action(update);
  const card = approvalCards(update, () => current?.refresh());
  const calls = pastCalls(update);
  /** @type {Set<string>} */
  const opened = new Set();
  /** @type {import("../live/watch.js").Watched | null} */
  let current = null;
  /** @type {ReturnType<typeof receipts> | null} */
  let sent = null;
  /** @type {any[]} pages before the newest */
  let older = [];
  let hasOlder = true;
  let draftId = messageId("page");
  let brain = "";
  askForBrains(update);

  function changed() {
    const live = seen.value?.live ?? newestOpen();
    if (live && live !== current?.turnId) watch(live);
    update();
  }

  /** The newest turn if it has not ended. It may be accepted but not live yet. */
  function newestOpen() {
    const turn = history.value?.findLast?.((/** @type {any} */ one) => !isOver(one.state));
    return current && !current.isOver ? undefined : turn?.turn_id;
  }

  /** @param {string} turnId */
  function watch(turnId) {
    current?.stop();
    sent?.stop();
    opened.clear();
    let wasOver = false;
    current = watchTurn(turnId, () => {
      if (current?.isOver && !wasOver) {
        wasOver = true;
        seen.refresh();
        history.refresh();
      }
      update();
    });
    sent = receipts(turnId, update);
  }

  /** @param {string} text */
  async function say(text) {
    const done = await sending.run(async () => {
      const body = { session_id: sessionId, user_message: text, ...(brain ? { brain } : {}) };
      const told = await ask("POST", "v1/turns", { body, headers: { "Idempotency-Key": draftId } });
      if (!current || current.isOver) watch(told.turn_id);
    });
    if (done) draftId = messageId("page");
    toEnd();
    seen.refresh();
    history.refresh();
    return done;
  }

  /** @param {string} text */
  async function steer(text) {
    const done = await sending.run(async () => {
      await sent?.send(text, draftId);
    });
    if (done) draftId = messageId("page");
    return done;
  }

  /** @param {string} method @param {string} path @param {string} word */
  const act = (method, path, word) => async () => {
    await acting.run(async () => {
      await ask(method, `${at}/${path}`);
      return word;
    });
    seen.refresh();
    history.refresh();
  };

  async function earlier() {
    const first = older[0] ?? history.value?.[0];
    await acting.run(async () => {
      const { turns } = await ask("GET", `${at}/history?limit=${PAGE}&after=${enc(first.turn_id)}`);
      older = [...turns, ...older];
      hasOlder = turns.length === PAGE;
    });
  }

  function render() {
    const isNew = seen.problem?.status === 404;
    if (!seen.value && !isNew) return [seen.problem && !seen.problem.passes ? refusal(seen.problem) : loading(8)];
    stick();
    const newest = history.value ?? [];
    const past = [...older, ...newest].filter((turn) => turn.turn_id !== current?.turnId && isOver(turn.state));
    const waiting = (seen.value?.waiting ?? []).filter((/** @type {any} */ turn) => turn.turn_id !== current?.turnId);
    const isLive = current !== null && !current.isOver;
    return [
      h(
        "div",
        { class: "head" },
        h("h1", null, sessionId),
        seen.value?.is_paused ? h("span", { class: "badge", "data-tone": "park", title: seen.value.why_paused || "No further turn begins" }, h("span", { class: "dot", "aria-hidden": "true" }), "paused") : null,
        h(
          "div",
          { class: "buttons" },
          isNew ? null : seen.value?.is_paused ? actionButton("Resume", acting.outcome, act("POST", "resume", "Turns can begin again.")) : actionButton("Pause", acting.outcome, act("POST", "pause", "No further turn will begin."), "", { title: "Keep further turns from beginning; a live turn continues" }),
          seen.value?.live ? actionButton("Interrupt", acting.outcome, act("POST", "interrupt", "The live turn was asked to stop."), "", { title: "Cancel the live turn, so that the next one begins" }) : null,
          h("a", { class: "button quiet", href: link(["turns"], { session: sessionId }) }, "Turns in this session"),
          isNew ? null : newChatButton(),
        ),
        said(acting.outcome),
      ),
      flags(),
      h(
        "div",
        { class: "chat" },
        newest.length === PAGE && hasOlder ? actionButton("Show earlier turns", acting.outcome, earlier, "quiet") : null,
        past.map((turn) => pastTurn(turn, calls.of(turn))),
        current ? h("section", { class: "current", key: current.turnId, "aria-label": "The newest turn" }, turnLine(current.turnId, current.state, current.result.value?.stop_reason ?? current.events.stopReason), conversation(current, { opened, update, approval: card }), warnings(current.result.value), sent?.render()) : null,
        !past.length && !current ? h("p", { class: "muted", key: "first" }, "The session begins with your first message.") : null,
        waiting.length
          ? h(
              "ol",
              { class: "waiting", key: "waiting", "aria-label": "Turns that wait" },
              waiting.map((/** @type {any} */ turn) =>
                h("li", { key: turn.turn_id }, badge("queued"), h("a", { href: link(["turns", turn.turn_id]) }, messageOf(turn, newest)), h("span", { class: "muted" }, ago(turn.created_at)), actionButton("Drop", acting.outcome, act("DELETE", `waiting/${enc(turn.turn_id)}`, "Dropped."))),
              ),
            )
          : null,
      ),
      h(
        "div",
        { class: "dock", key: "dock" },
        composer({
          id: "say",
          label: isLive ? "Message the running turn" : "Your message",
          placeholder: isLive ? "The model reads it at the next step" : "Ask something",
          name: isLive ? "Steer" : "Send",
          outcome: sending.outcome,
          send: isLive ? steer : say,
          focus: true,
          beside: isLive ? h("button", { class: "button", type: "button", onclick: queue, key: "queue" }, "Queue as the next turn") : brainChoice(),
        }),
      ),
    ];
  }

  async function queue() {
    const field = /** @type {HTMLTextAreaElement} */ (document.getElementById("say"));
    if (field.value.trim() && (await say(field.value))) field.value = "";
  }

  function brainChoice() {
    const brains = knownBrains();
    if (brains.length < 2) return null;
    return h(
      "select",
      { "aria-label": "Brain", value: brain, onchange: (/** @type {Event} */ event) => ((brain = /** @type {HTMLSelectElement} */ (event.target).value), update()), key: "brain" },
      brains.map((one) => h("option", { value: one.is_default ? "" : one.name, key: one.name }, `${one.name} · ${one.model}`)),
    );
  }

  function flags() {
    const unread = seen.value?.flags ?? [];
    return unread.map((/** @type {string} */ flag) =>
      h("div", { class: "strip park", key: flag }, h("span", null, "The next turn waits until this is released."), actionButton("Release", acting.outcome, act("DELETE", `flags/${enc(flag)}`, "Released."))),
    );
  }

  return {
    title: () => sessionId,
    render,
    stop() {
      seen.stop();
      history.stop();
      current?.stop();
      sent?.stop();
    },
  };
}

/** @param {any} turn @param {import("../core/dom.js").Loose} calls */
function pastTurn(turn, calls) {
  return h(
    "section",
    { class: "past", key: turn.turn_id, "aria-label": "An earlier turn" },
    turnLine(turn.turn_id, turn.state, turn.stop_reason, turn.accepted_at),
    turn.greeting ? h("article", { class: "message model" }, h("header", null, "Greeting"), markdown(turn.greeting)) : null,
    turn.is_kept === false ? h("p", { class: "muted" }, "Its content is not kept.") : null,
    turn.user_message || turn.attachments?.length
      ? h("article", { class: "message user" }, h("header", null, "User"), turn.user_message ? h("div", { class: "prose plain", dir: "auto" }, turn.user_message) : null, files(turn.turn_id, turn.attachments))
      : null,
    calls,
    turn.text ? h("article", { class: "message model" }, h("header", null, "Model"), markdown(turn.text)) : null,
  );
}

/** @param {string} turnId @param {string} state @param {string | null | undefined} stopReason @param {string} [at] */
function turnLine(turnId, state, stopReason, at) {
  const isWhole = state === "completed" && (!stopReason || stopReason === "answered");
  return h("p", { class: "turn-line" }, h("a", { href: link(["turns", turnId]) }, "Turn"), isWhole ? null : turnBadge(state || "accepted", stopReason), at ? h("span", { class: "muted" }, ago(at)) : null);
}

/** @param {any} turn @param {any[]} history */
function messageOf(turn, history) {
  return history.find((one) => one.turn_id === turn.turn_id)?.user_message || `Turn ${turn.turn_id}, ${counted(turn.place, "turn")} to go`;
}

/** Keep the end in view for a reader who is at the end. */
function stick() {
  const bottom = document.documentElement.scrollHeight - innerHeight - scrollY;
  if (bottom < NEAR_PX) toEnd();
}

function toEnd() {
  requestAnimationFrame(() => scrollTo(0, document.documentElement.scrollHeight));
}
