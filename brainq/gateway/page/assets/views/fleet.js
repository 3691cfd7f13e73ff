/** The fleet: pools and workers, queues, lanes, the sweeper, abandoned work, and Redis. */

import { ask } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { duration } from "../core/when.js";
import { counted, dollars, wordOf } from "../core/words.js";
import { askForBrains } from "../live/brains.js";
import { costOfCalls } from "../live/figures.js";
import { awaited, cellsAway, figure, refusal } from "../parts/bits.js";
import { budgetsPanel } from "../parts/budgets.js";
import { sparkline } from "../parts/sparkline.js";
import { stopsPanel } from "../parts/stops.js";

/** @type {Record<string, string>} */
const STATES = {
  active: "Running turns",
  parked: "Turns that wait for a person or an outside result; they occupy no worker",
  queued: "Turns that wait to begin",
  closing: "Turns that have an answer and are being recorded",
  accepted: "Turns that were submitted and are not queued yet",
};
const SPEND_DAYS = 30;
const SPEND_ROWS = 20;
const LATE_S = 10; // a queue, or a sweeper, that is this old deserves a look

/** @type {import("../main.js").MakeView} */
export function fleetView(_, update) {
  const fleet = source((signal) => ask("GET", "v1/fleet", { signal }), update, { every: 2_000 });
  const cells = source((signal) => ask("GET", "v1/cells", { signal }), update, { every: 10_000 });
  const activity = source((signal) => ask("GET", "v1/fleet/activity", { signal }), update, { every: 10_000 });
  const since = new Date(Date.now() - SPEND_DAYS * 86_400_000).toISOString();
  const spend = source((signal) => ask("GET", `v1/spend?by=tenant,model&since=${since}`, { signal }), update, { every: 60_000 });
  const budgets = budgetsPanel(update);
  const stops = stopsPanel(update, () => fleet.refresh());
  askForBrains(update);
  return {
    title: () => "Fleet",
    stop() {
      fleet.stop();
      cells.stop();
      activity.stop();
      spend.stop();
      budgets.stop();
    },
    render: () => [
      h("div", { class: "head" }, h("h1", null, "Fleet")),
      fleet.problem && !fleet.problem.passes ? [refusal(fleet.problem), h("p", { class: "muted" }, "To see the fleet a token needs the verb operate, and all sessions (*).")] : null,
      cellsAway(fleet.value),
      cells.value?.cells.length > 1 ? cellsPanel(cells.value.cells) : null,
      fleet.value ? [activity.value ? hour(activity.value, spend.value?.lines ?? []) : null, shown(fleet.value, stops.render(fleet.value.stops ?? [])), budgets.render(unpriced(spend.value?.lines ?? [])), spend.value ? spent(spend.value) : null] : fleet.problem && !fleet.problem.passes ? null : awaited(fleet.problem, 10),
    ],
  };
}

/** What the last hour was like. @param {any} told @param {any[]} lines of the spend */
function hour(told, lines) {
  /** @type {any[]} */
  const minutes = told.minutes;
  const sum = (/** @type {string} */ name) => minutes.reduce((total, one) => total + one[name], 0);
  const [ended, failed, cost] = [sum("ended"), sum("failed"), sum("cost_usd")];
  const recent = minutes.slice(-6, -1); // the minute that goes on is not whole
  const rate = recent.reduce((total, one) => total + one.accepted, 0) / recent.length;
  const longest = Math.max(0, ...minutes.map((one) => one.p95_s ?? 0));
  const note = told.is_whole ? "" : " Only the newest 20,000 turns were examined.";
  return h(
    "section",
    { class: "sparks", key: "hour", "aria-label": "The last hour" },
    sparkline("Turns per minute", rate.toLocaleString("en", { maximumFractionDigits: 1 }), minutes.map((one) => one.accepted), { title: `Turns accepted in each minute of the last hour; the figure is the mean of the last five.${note}`, of: (value) => counted(value, "turn") }),
    sparkline("p95", longest ? duration(longest * 1000) : "–", minutes.map((one) => one.p95_s), { tone: "model", title: `The duration that 95 % of turns did not exceed, by the minute in which they ended; the figure is the highest.${note}`, of: (value) => duration(value * 1000) }),
    sparkline("Failures", ended ? `${failed.toLocaleString("en")} of ${ended.toLocaleString("en")}` : "–", minutes.map((one) => one.failed), { tone: "bad", title: `Turns that failed or timed out, of those that ended.${note}`, of: (value) => counted(value, "turn") }),
    sparkline("Cost, last hour", dollars(cost || costOfCalls(lines) !== null ? cost : null), minutes.map((one) => one.cost_usd), { tone: "aside", title: `The cost of the turns that ended, as far as prices are known.${note}`, of: dollars }),
  );
}

/** @param {any} fleet @param {import("../core/dom.js").Child} stops */
function shown(fleet, stops) {
  return [
    h(
      "dl",
      { class: "figures", key: "turns" },
      ["active", "parked", "queued", "closing", "accepted"].map((state) => figure(capital(wordOf(state)), h("a", { href: link(["turns"], { state }) }, `${fleet.turns[state].toLocaleString("en")}${fleet.turns.is_whole ? "" : "+"}`), STATES[state])),
      figure("Capacity", fleet.room.size === null ? "–" : `${fleet.room.live} of ${fleet.room.size}`, "Running turns out of the maximum; the others are queued, and tenants take turns"),
      fleet.room.brains.map((/** @type {any} */ brain) => figure(`Brain ${brain.name}`, `${brain.live} of ${brain.cap}`, "Running turns of this brain out of the maximum")),
      figure("Approvals", h("a", { href: "#/approvals" }, String(fleet.turns.approvals)), "Calls that wait for a person"),
      figure("Lanes held", String(fleet.lanes.held), "Calls with exclusive access to what they change"),
      figure("Waiting for lanes", String(fleet.lanes.waiting), "Calls that wait for another call to finish its change"),
      figure("Expired leases", warned(String(fleet.lanes.lapsed), fleet.lanes.lapsed > 0), "Calls whose worker has stopped sending heartbeats"),
      figure("Sweeper", sweeper(fleet.sweeper), "The last check for lost messages and dead workers"),
    ),
    troubles(fleet.troubles ?? []),
    stops,
    h("div", { class: "columns fleet", key: "columns" }, h("div", { class: "aside" }, pools(fleet.pools), queues(fleet.queues)), h("div", { class: "aside" }, givenUp(fleet.given_up), redis(fleet.redis))),
  ];
}

/** What is wrong though processes look healthy. @param {any[]} found */
function troubles(found) {
  if (!found.length) return null;
  return h(
    "section",
    { class: "panel", role: "alert", key: "troubles" },
    h("h2", null, "Troubles"),
    h("ul", null, found.map((trouble) => h("li", { key: `${trouble.kind} ${trouble.subject}` }, h("strong", { class: "bad" }, trouble.text), ` – ${trouble.remedy}`))),
  );
}

/** Models of calls without a price. @param {any[]} lines @returns {string[]} */
function unpriced(lines) {
  return [...new Set(lines.filter((line) => line.unpriced_calls && line.model).map((line) => line.model))].sort();
}

/** What model calls have cost, the dearest first. @param {any} found */
function spent(found) {
  const lines = [...found.lines].sort((one, other) => other.cost_usd - one.cost_usd);
  const figures = (/** @type {any} */ line) => [line.tenant === ":" ? "(none)" : line.tenant, line.model, line.calls.toLocaleString("en"), dollars(costOfCalls([line])), line.estimated_usd ? dollars(line.estimated_usd) : "–", line.unpriced_calls ? line.unpriced_calls.toLocaleString("en") : "–"];
  return panel(`Spend, last ${SPEND_DAYS} days: ${dollars(found.total_usd || costOfCalls(found.lines))}`, ["Tenant", "Model", "Calls", "Cost", "Estimated", "Without a price"], lines.slice(0, SPEND_ROWS).map(figures));
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
        warned(pool.workers.length ? pool.workers.map((/** @type {any} */ one) => one.name).join(", ") : "no worker is running", !pool.workers.length),
        threads ? h("span", { class: "meter" }, h("i", { "aria-hidden": "true", style: { width: `${(100 * busy) / threads}%` } }), h("span", null, `${busy} of ${threads}`)) : "–",
        pool.queues.map((/** @type {string} */ queue) => queue.replace("brainq.", "")).join(", "),
      ];
    }),
  );
}

/** Where the tenants are. Cells of one Redis Cluster have one address, so their slots and nodes are shown. @param {any[]} found */
function cellsPanel(found) {
  const number = (/** @type {any} */ cell, /** @type {string} */ name) => (cell.is_up ? cell[name].toLocaleString("en") : "–");
  return panel(
    "Cells",
    ["Cell", "State", "Tenants", "Running", "Workers", "Redis"],
    found.map((cell) => [cell.name, warned(cell.is_up ? "up" : "away", !cell.is_up), cell.tenants === null ? "–" : cell.tenants.toLocaleString("en"), number(cell, "active"), number(cell, "workers"), cell.slot === null ? cell.redis : `slot ${cell.slot} on ${cell.node}`]),
  );
}

/** @param {any[]} found */
function queues(found) {
  if (!found.length) return h("section", { class: "panel" }, h("h2", null, "Queues"), h("p", { class: "muted" }, "The broker is a service of its own; ask it for its queues."));
  return panel(
    "Queues",
    ["Queue", "Messages", "Oldest"],
    found.map((queue) => [queue.name, String(queue.depth), queue.oldest_age_s === null ? "–" : warned(duration(queue.oldest_age_s * 1000), queue.oldest_age_s > LATE_S)]),
  );
}

/** @param {any} found */
function givenUp(found) {
  const kinds = [
    ["Finalizer steps", found.finalizer_steps, "brainq finalize retry, or the turn's page"],
    ["Judgements", found.judgements, "brainq finalize retry"],
    ["Webhooks", found.deliveries, "brainq webhook retry"],
    ["Unreadable messages", found.quarantined, "docs/operate/operations.md"],
    ["Messages without the key prefix", found.unprefixed, "brainq doctor"],
  ];
  return panel("Given up", ["Work", "Count"], kinds.map(([what, count, by]) => [count ? [what, h("small", { class: "muted mended" }, `repair: ${by}`)] : what, warned(String(count), count > 0)]));
}

/** @param {any} found */
function redis(found) {
  const mb = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  return panel("Redis", ["Setting", "Value"], [
    ["Version", found.version],
    ["Memory", `${mb(found.used_bytes)}${found.max_bytes ? ` of ${mb(found.max_bytes)}` : ", no limit"}`],
    ["When memory is full", warned(found.policy, found.policy !== "noeviction")],
    ["Persists to disk", warned(found.keeps_on_disk ? "yes" : "no", !found.keeps_on_disk)],
  ]);
}

/** @param {any} found */
function sweeper(found) {
  if (found.last_round_s === null) return warned("not in the last day", true);
  const late = found.overdue_s > LATE_S;
  return warned(late ? `${duration(found.overdue_s * 1000)} late` : `${duration(found.last_round_s * 1000)} ago`, late);
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
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
