/** The newest turns, filtered; live ones as Redis knows them, the rest from SQL. */

import { ask } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago, duration, ms, now, relative } from "../core/when.js";
import { counted, dollars, isOver } from "../core/words.js";
import { askForBrains } from "../live/brains.js";
import { badge, empty, loading, refusal } from "../parts/bits.js";
import { filters } from "../parts/filters.js";

const EVERY_MS = 1_500;
const PAGE = 50;
const MOST = 200;
const PORTION = 12; // rows a frame

/** @type {import("../main.js").MakeView} */
export function turnsView(place, update) {
  let query = place.query;
  let found = open();
  askForBrains(update);

  function open() {
    const asked = new URLSearchParams({ ...wanted(query), limit: String(limitOf(query)) });
    return source((signal) => ask("GET", `v1/turns?${asked}`, { signal }), update, { every: EVERY_MS });
  }

  return {
    title: () => "Turns",
    stop: () => found.stop(),
    go(to) {
      const before = found.value;
      query = to.query;
      found.stop();
      found = open();
      found.value = before; // until the answer is there nothing jumps
    },
    render() {
      const turns = found.value?.turns;
      const isFiltered = Object.keys(wanted(query)).length > 0;
      return [
        h("div", { class: "head" }, h("h1", null, "Turns"), h("a", { class: "button primary", href: link(["sessions"], { new: "1" }) }, "New chat")),
        filters(query, (next) => go(link(["turns"], next))),
        found.problem && !found.problem.passes ? refusal(found.problem) : null,
        !turns
          ? found.problem && !found.problem.passes
            ? null
            : loading(12)
          : turns.length
            ? table(turns, update)
            : isFiltered
              ? empty("No turn is like that", h("a", { href: "#/turns" }, "Show all turns"))
              : empty("No turns yet", "Submit one: ", h("code", null, 'brainq submit s1 "Hello!"'), ", or begin a ", h("a", { href: link(["sessions"], { new: "1" }) }, "chat"), "."),
        turns && turns.length >= limitOf(query) && limitOf(query) < MOST
          ? h("p", { class: "more" }, h("a", { href: link(["turns"], { ...query, limit: String(MOST) }) }, `Show up to ${MOST}`))
          : null,
      ];
    },
  };
}

/** @param {Record<string, string>} query */
function limitOf(query) {
  return Math.min(MOST, Number(query.limit) || PAGE);
}

/** The address's filters as the route's. @param {Record<string, string>} query @returns {Record<string, string>} */
function wanted({ brain, state, ending, failing, dear, text, session }) {
  /** @type {Record<string, string>} */
  const found = {};
  if (brain) found.brain = brain;
  if (state) found.state = state;
  if (ending) found.ending = ending;
  if (failing) found.failing = "true";
  if (dear) found.min_cost_usd = dear;
  if (text) found.text = text;
  if (session) found.session = session;
  return found;
}

/** Rows as they were drawn last, by their turns. @type {Map<string, {of: string, row: import("../core/dom.js").VNode}>} */
let drawn = new Map();

/** A row of which nothing changed is not drawn again, and of all others a portion a frame. @param {any[]} turns @param {() => void} update */
function table(turns, update) {
  let left = PORTION;
  /** @type {typeof drawn} */
  const next = new Map();
  for (const turn of turns) {
    const before = drawn.get(turn.turn_id);
    const isDone = isOver(turn.state);
    const took = duration((isDone && turn.ended_at ? ms(turn.ended_at) : now()) - ms(turn.accepted_at));
    const of = `${JSON.stringify(turn)} ${took} ${relative(ms(turn.accepted_at))}`;
    const isSame = before?.of === of;
    if (!isSame) left -= 1;
    if (before && (isSame || left < 0)) next.set(turn.turn_id, before);
    else if (left >= 0) next.set(turn.turn_id, { of, row: row(turn, isDone, took) });
  }
  drawn = next;
  if (left < 0) update();
  return h(
    "div",
    { class: "turns", role: "table", "aria-label": "Turns", "aria-rowcount": String(turns.length) },
    h("div", { class: "turn-row head-row", role: "row" }, ["State", "Message", "Session", "Steps / calls", "Cost", "Took", "Begun"].map((name) => h("span", { role: "columnheader", key: name }, name))),
    [...drawn.values()].map((one) => one.row),
  );
}

/** @param {any} turn @param {boolean} isDone @param {string} took */
function row(turn, isDone, took) {
  return h(
    "div",
    { class: "turn-row", role: "row", key: turn.turn_id, "data-state": turn.state },
    h("span", { role: "cell", class: "c-state" }, badge(turn.state)),
    h(
      "span",
      { role: "cell", class: "c-message" },
      h("a", { href: link(["turns", turn.turn_id]) }, turn.message || `Turn ${turn.turn_id}`),
      h("small", { title: turn.note }, noteOf(turn)),
    ),
    h("span", { role: "cell", class: "c-session" }, h("a", { class: "quiet-link", href: link(["sessions", turn.session_id]) }, turn.session_id)),
    h(
      "span",
      { role: "cell", class: "c-work" },
      `${turn.steps} / ${turn.calls}`,
      turn.failed_calls ? h("small", { class: "bad" }, `${turn.failed_calls} failed`) : null,
      turn.dead_steps ? h("small", { class: "bad" }, `${turn.dead_steps} given up`) : null,
    ),
    h("span", { role: "cell", class: "c-cost number" }, turn.cost_usd === null || turn.cost_usd === undefined ? "–" : dollars(turn.cost_usd)),
    h("span", { role: "cell", class: "c-took number" }, turn.state === "rejected" ? "–" : took),
    h("span", { role: "cell", class: "c-when" }, ago(turn.accepted_at)),
  );
}

/** What happens next, or why it stopped; of an answer, what it took. @param {any} turn */
function noteOf(turn) {
  if (turn.note !== "answered") return turn.note || "…";
  return turn.tokens ? counted(turn.tokens, "token") : "answered";
}
