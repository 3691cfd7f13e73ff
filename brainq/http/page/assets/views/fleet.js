/** What runs turns: pools and their workers, queues, lanes, the sweeper, what was given up, Redis. */

import { ask } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { duration } from "../core/when.js";
import { counted, wordOf } from "../core/words.js";
import { figure, loading, refusal } from "../parts/bits.js";

const LATE_S = 10; // a queue, or a sweeper, that is this old deserves a look

/** @type {import("../main.js").MakeView} */
export function fleetView(_, update) {
  const fleet = source((signal) => ask("GET", "v1/fleet", { signal }), update, { every: 2_000 });
  return {
    title: () => "Fleet",
    stop: () => fleet.stop(),
    render: () => [
      h("div", { class: "head" }, h("h1", null, "Fleet")),
      fleet.problem && !fleet.problem.passes ? [refusal(fleet.problem), h("p", { class: "muted" }, "The fleet is of no one session: to see it a token needs the verb operate, and all sessions (*).")] : null,
      fleet.value ? shown(fleet.value) : fleet.problem && !fleet.problem.passes ? null : loading(10),
    ],
  };
}

/** @param {any} fleet */
function shown(fleet) {
  return [
    h(
      "dl",
      { class: "figures", key: "turns" },
      ["active", "parked", "queued", "closing", "accepted"].map((state) => figure(wordOf(state), h("a", { href: link(["turns"], { state }) }, `${fleet.turns[state].toLocaleString("en")}${fleet.turns.is_whole ? "" : "+"}`))),
      figure("room", fleet.room.size === null ? "–" : `${fleet.room.live} of ${fleet.room.size}`, "Turns that are live, of those that may be; the others wait, and tenants take turns"),
      fleet.room.brains.map((/** @type {any} */ brain) => figure(`brain ${brain.name}`, `${brain.live} of ${brain.cap}`, "Live turns of this brain, of those that may be")),
      figure("approvals", h("a", { href: "#/approvals" }, String(fleet.turns.approvals)), "Calls that wait for a person"),
      figure("lanes held", String(fleet.lanes.held), "Calls that hold all their lanes"),
      figure("wait for lanes", String(fleet.lanes.waiting)),
      figure("lapsed leases", warned(String(fleet.lanes.lapsed), fleet.lanes.lapsed > 0), "Of calls that hold lanes: their worker stopped beating"),
      figure("sweeper", sweeper(fleet.sweeper), "When what was lost was last looked for"),
    ),
    h("div", { class: "columns fleet", key: "columns" }, h("div", { class: "aside" }, pools(fleet.pools), queues(fleet.queues)), h("div", { class: "aside" }, givenUp(fleet.given_up), redis(fleet.redis))),
  ];
}

/** @param {any[]} found */
function pools(found) {
  return panel(
    "Pools",
    ["Pool", "Workers", "Busy", "Serves"],
    found.map((pool) => {
      const threads = pool.workers.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.threads, 0);
      const busy = pool.workers.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.busy, 0);
      return [
        pool.name,
        warned(pool.workers.length ? pool.workers.map((/** @type {any} */ one) => one.name).join(", ") : "none is alive", !pool.workers.length),
        threads ? h("span", { class: "meter" }, h("i", { "aria-hidden": "true", style: { width: `${(100 * busy) / threads}%` } }), h("span", null, `${busy} of ${threads}`)) : "–",
        pool.queues.map((/** @type {string} */ queue) => queue.replace("brainq.", "")).join(", "),
      ];
    }),
  );
}

/** @param {any[]} found */
function queues(found) {
  if (!found.length) return h("section", { class: "panel" }, h("h2", null, "Queues"), h("p", { class: "muted" }, "The broker is not the Redis of the state; ask it for its queues."));
  return panel(
    "Queues",
    ["Queue", "Doorbells", "Oldest"],
    found.map((queue) => [queue.name, String(queue.depth), queue.oldest_age_s === null ? "–" : warned(duration(queue.oldest_age_s * 1000), queue.oldest_age_s > LATE_S)]),
  );
}

/** @param {any} found */
function givenUp(found) {
  const kinds = [
    ["Finalizer steps", found.finalizer_steps, "brainq finalize retry, or the turn's page"],
    ["Judgements", found.judgements, "brainq finalize retry"],
    ["Webhooks", found.deliveries, "brainq webhook retry"],
    ["Messages nobody could read", found.quarantined, "docs/operations.md"],
  ];
  return panel("Given up", ["What", "How many"], kinds.map(([what, count, by]) => [count ? [what, h("small", { class: "muted mended" }, `mended by ${by}`)] : what, warned(String(count), count > 0)]));
}

/** @param {any} found */
function redis(found) {
  const mb = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  return panel("Redis", ["What", "Is"], [
    ["Version", found.version],
    ["Memory", `${mb(found.used_bytes)}${found.max_bytes ? ` of ${mb(found.max_bytes)}` : ", no limit"}`],
    ["When it is full", warned(found.policy, found.policy !== "noeviction")],
    ["Keeps its data on disk", warned(found.keeps_on_disk ? "yes" : "no", !found.keeps_on_disk)],
  ]);
}

/** @param {any} found */
function sweeper(found) {
  if (found.last_round_s === null) return warned("not within a day", true);
  const late = found.overdue_s > LATE_S;
  return warned(late ? `${duration(found.overdue_s * 1000)} late` : `${duration(found.last_round_s * 1000)} ago`, late);
}

/** @param {string} text @param {boolean} isBad */
function warned(text, isBad) {
  return isBad ? h("span", { class: "bad" }, text) : text;
}

/** @param {string} name @param {string[]} columns @param {any[][]} rows */
function panel(name, columns, rows) {
  return h(
    "section",
    { class: "panel", key: name },
    h("h2", null, name),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
      h(
        "table",
        { "aria-label": `${name}, ${counted(rows.length, "row")}` },
        h("thead", null, h("tr", null, columns.map((column) => h("th", { scope: "col", key: column }, column)))),
        h("tbody", null, rows.map((cells, index) => h("tr", { key: index }, cells.map((cell, at) => h("td", { key: at, class: at === 0 ? "strong" : "" }, cell))))),
      ),
    ),
  );
}
