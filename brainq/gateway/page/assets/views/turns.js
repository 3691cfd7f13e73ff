/** A filtered and sorted list of turns. Live ones come from Redis, the rest from SQL. */

import { ask } from "../core/api.js";
import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { ago, duration, ms, now, relative } from "../core/when.js";
import { dollars, isOver } from "../core/words.js";
import { askForBrains } from "../live/brains.js";
import { noteOf } from "../live/next.js";
import { action, actionButton, said } from "../parts/action.js";
import { cellsAway, empty, loading, refusal, turnBadge } from "../parts/bits.js";
import { filters, wanted } from "../parts/filters.js";
import { newChatButton } from "../parts/new_chat.js";

const EVERY_MS = 1_500;
const PAGE = 50;
const MORE = 200; // from the second page on
const PORTION = 12; // rows a frame

/** @type {import("../main.js").MakeView} */
export function turnsView(place, update) {
  let query = place.query;
  /** Pages behind the first, as they were when they were asked for. @type {any[]} */
  let older = [];
  /** @type {string | null | undefined} the next page begins behind this turn; undefined: the first page says so */
  let behind;
  let found = open();
  const loadingMore = action(update);
  askForBrains(update);

  function open() {
    older = [];
    behind = undefined;
    const asked = query;
    const limit = Math.min(MORE, Number(query.limit) || PAGE);
    return source((signal) => page(asked, { limit, signal }), update, { every: EVERY_MS });
  }

  /** @param {Record<string, string>} asked @param {{limit: number, before?: string, signal?: AbortSignal}} which */
  function page(asked, { limit, before, signal }) {
    const given = { ...wanted(asked, now()), limit: String(limit), ...(before ? { after: before } : {}) };
    return ask("GET", `v1/turns?${new URLSearchParams(given)}`, { signal });
  }

  async function more() {
    const asked = query;
    const before = behind ?? found.value?.next;
    await loadingMore.run(async () => {
      const shown = older.length ? older : (found.value?.turns ?? []);
      const next = await page(asked, { limit: MORE, before });
      if (asked !== query) return;
      older = [...shown, ...next.turns];
      behind = next.next;
    });
  }

  /** The current first page and the pages read after it. Turns that leave the first page stay in the list. */
  function rows() {
    const first = found.value?.turns ?? [];
    const known = new Set(first.map((/** @type {any} */ turn) => turn.turn_id));
    return [...first, ...older.filter((turn) => !known.has(turn.turn_id))];
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
      const isKnown = Boolean(found.value);
      const turns = rows();
      const isFiltered = Object.keys(wanted(query, now())).length > 0;
      const hasMore = behind === undefined ? found.value?.next : behind;
      const isRefused = found.problem && !found.problem.passes;
      return [
        h("div", { class: "head" }, h("h1", null, "Turns"), newChatButton()),
        filters(query, (next) => go(link(["turns"], next))),
        isRefused ? refusal(/** @type {any} */ (found.problem)) : null,
        cellsAway(found.value),
        !isKnown
          ? isRefused
            ? null
            : loading(12)
          : turns.length
            ? table(turns, update)
            : isFiltered
              ? empty("No turns match", h("a", { href: "#/turns" }, "Clear the filters"))
              : empty("No turns yet", "Submit one: ", h("code", null, 'brainq submit s1 "Hello!"'), ", or begin a chat."),
        isKnown && hasMore ? h("div", { class: "more" }, actionButton("Show more", loadingMore.outcome, more), h("span", { class: "muted" }, `${turns.length.toLocaleString("en")} shown`), said(loadingMore.outcome)) : null,
      ];
    },
  };
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
    h("div", { class: "turn-row head-row", role: "row" }, ["State", "Message", "Session", "Steps / calls", "Cost", "Took", "Accepted"].map((name) => h("span", { role: "columnheader", key: name }, name))),
    [...drawn.values()].map((one) => one.row),
  );
}

/** @param {any} turn @param {boolean} isDone @param {string} took */
function row(turn, isDone, took) {
  const note = noteOf(turn);
  return h(
    "div",
    { class: "turn-row", role: "row", key: turn.turn_id, "data-state": turn.state },
    h("span", { role: "cell", class: "c-state" }, turnBadge(turn.state, turn.stop_reason, turn.unknown_calls)),
    h(
      "span",
      { role: "cell", class: "c-message" },
      h("a", { href: link(["turns", turn.turn_id]), dir: "auto" }, turn.message || `Turn ${turn.turn_id}`),
      h("small", { title: note === turn.note ? note : `${note} (${turn.note})` }, note),
    ),
    h(
      "span",
      { role: "cell", class: "c-session" },
      h("a", { class: "quiet-link", href: link(["sessions", turn.session_id]) }, turn.session_id),
      turn.parent ? h("small", null, "child of ", h("a", { class: "inline-link", href: link(["turns", turn.parent.turn_id], { call: turn.parent.call_id }) }, turn.parent.session_id)) : null,
    ),
    h(
      "span",
      { role: "cell", class: "c-work" },
      `${turn.steps} / ${turn.calls}`,
      turn.failed_calls > turn.unknown_calls ? h("small", { class: "bad" }, `${turn.failed_calls - turn.unknown_calls} failed`) : null,
      turn.dead_steps ? h("small", { class: "bad" }, `${turn.dead_steps} given up`) : null,
    ),
    h("span", { role: "cell", class: "c-cost number" }, (turn.cost_usd ?? null) === null && !turn.tokens ? "–" : dollars(turn.cost_usd)),
    h("span", { role: "cell", class: "c-took number" }, turn.state === "rejected" ? "–" : took),
    h("span", { role: "cell", class: "c-when" }, ago(turn.accepted_at)),
  );
}
