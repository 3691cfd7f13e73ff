/** The timeline as rows of bars, which Tab and the arrow keys reach, and as a table. */

import { h } from "../core/dom.js";
import { duration } from "../core/when.js";
import { counted } from "../core/words.js";
import { endOf, scaleOf } from "../live/scale.js";

/**
 * @typedef {import("../live/rows.js").Row} Row
 * @typedef {import("../live/rows.js").Bar} Bar
 * @typedef {{at: string, showTable: boolean, zoom: number, isUnfolded: boolean}} Chosen which bar is looked at, and how near
 */

const NEAR = 5; // per cent of the width below which a bar says nothing in itself
const LINE_PX = 26;
const LAST_LABEL = 0.96; // of the width; a label further right would be cut
const ZOOMS = [1, 2, 4, 8, 16];

/**
 * @param {Row[]} rows
 * @param {{from: number, now: number, isOver: boolean, waits: {from: number, to: number}[]}} span
 * @param {Chosen} chosen
 * @param {(chosen: Partial<Chosen>) => void} choose
 * @param {(bar: Bar) => void} open called with a bar that leads somewhere
 */
export function timeline(rows, { from, now, isOver, waits }, chosen, choose, open) {
  const bars = rows.flatMap((row) => row.bars);
  const last = Math.max(from + 1, ...bars.map((bar) => bar.to));
  const scale = scaleOf(from, endOf(from, isOver ? last : now, waits, isOver), waits, (innerWidth < 700 ? 4 : 9) * chosen.zoom);
  const at = bars.find((bar) => bar.key === chosen.at) ?? bars[0];
  return h(
    "section",
    { class: "timeline", key: "timeline", "aria-label": "Timeline" },
    h(
      "div",
      { class: "tl-grid", "data-zoomed": chosen.zoom > 1 ? "yes" : "no", style: { "--zoom": String(chosen.zoom) }, role: chosen.zoom > 1 ? "region" : undefined, "aria-label": chosen.zoom > 1 ? "Timeline, zoomed" : undefined },
      h("div", { class: "tl-axis", "aria-hidden": "true" }, scale.ticks.filter((tick) => tick.x < LAST_LABEL).map((tick) => h("span", { style: { left: percent(tick.x) }, key: tick.at }, tick.label))),
      rows.map((row) =>
        h(
          "div",
          { class: "tl-row", key: row.key },
          h("div", { class: "tl-name", id: `row-${row.key}` }, h("span", null, row.name), h("small", { title: row.hint }, row.hint)),
          h(
            "div",
            { class: "tl-bars", role: "group", "aria-label": `${row.name}, ${row.hint}`, style: { height: `${row.lines * LINE_PX + 6}px` } },
            scale.ticks.map((tick) => h("i", { class: "tl-tick", key: tick.at, style: { left: percent(tick.x) } })),
            scale.breaks.map((gap, index) => h("i", { class: "tl-break", key: `break ${index}`, style: { left: percent(gap.x0), width: percent(gap.x1 - gap.x0) }, title: `${duration(gap.real)}, drawn shorter` })),
            row.bars.map((bar) => one(bar, scale, at?.key === bar.key, chosen.zoom, choose, open, (event) => moved(event, rows, row, bar, choose))),
          ),
        ),
      ),
    ),
    facts(at, from, scale.breaks.length > 0),
    tools(rows, chosen, choose),
    table(rows, from, chosen.showTable, choose),
  );
}

/**
 * @param {Bar} bar
 * @param {import("../live/scale.js").Scale} scale
 * @param {boolean} isChosen
 * @param {number} zoom
 * @param {(chosen: Partial<Chosen>) => void} choose
 * @param {(bar: Bar) => void} open
 * @param {(event: KeyboardEvent) => void} onkeydown
 */
function one(bar, scale, isChosen, zoom, choose, open, onkeydown) {
  const left = scale.x(bar.from);
  const width = scale.x(bar.to) - left;
  const inside = (/** @type {number} */ at) => percent(width ? (scale.x(at) - left) / width : 0);
  return h(
    "button",
    {
      key: bar.key,
      type: "button",
      class: "tl-bar",
      "data-bar": bar.key,
      "data-tone": bar.tone,
      "data-open": bar.open ? "yes" : "no",
      "data-chosen": isChosen ? "yes" : "no",
      tabindex: isChosen ? "0" : "-1",
      "aria-label": `${bar.label}, ${duration(bar.to - bar.from)}${bar.facts.map(([name, value]) => `; ${name ? `${name} ` : ""}${value}`).join("")}`,
      style: { left: percent(left), width: percent(width), top: `${bar.line * LINE_PX + 3}px` },
      onfocus: () => choose({ at: bar.key }),
      onmouseenter: () => choose({ at: bar.key }),
      onclick: () => (bar.call || bar.step) && open(bar),
      onkeydown,
    },
    bar.parts.map((part, index) => h("i", { class: "tl-part", key: index, "data-tone": part.tone, style: { left: inside(part.from), width: percent(width ? (scale.x(part.to) - scale.x(part.from)) / width : 1) } })),
    width * 100 * zoom > NEAR ? h("span", { class: "tl-label" }, bar.label) : null,
  );
}

/** Nearer, farther, and whether equal calls are one bar. @param {Row[]} rows @param {Chosen} chosen @param {(chosen: Partial<Chosen>) => void} choose */
function tools(rows, chosen, choose) {
  const at = ZOOMS.indexOf(chosen.zoom);
  const isFolded = rows.some((row) => row.bars.some((bar) => bar.calls));
  const zoom = (/** @type {string} */ name, /** @type {string} */ label, /** @type {number | undefined} */ to) =>
    h("button", { class: "tl-tool", type: "button", title: label, "aria-label": label, disabled: to === undefined || to === chosen.zoom, onclick: () => choose({ zoom: to }), key: label }, name);
  return h(
    "div",
    { class: "tl-tools", key: "tools" },
    isFolded || chosen.isUnfolded
      ? h("button", { class: "tl-tool", type: "button", "aria-pressed": String(chosen.isUnfolded), onclick: () => choose({ isUnfolded: !chosen.isUnfolded }), key: "fold" }, chosen.isUnfolded ? "Fold equal calls" : "Show every call")
      : null,
    zoom("−", "Zoom out", ZOOMS[at - 1]),
    zoom("+", "Zoom in", ZOOMS[at + 1]),
    zoom("Fit", "Fit to the width", 1),
  );
}

/** Arrows go from bar to bar. @param {KeyboardEvent} event @param {Row[]} rows @param {Row} row @param {Bar} bar @param {(chosen: Partial<Chosen>) => void} choose */
function moved(event, rows, row, bar, choose) {
  const at = row.bars.findIndex((other) => other.key === bar.key);
  const above = rows[rows.indexOf(row) - 1];
  const below = rows[rows.indexOf(row) + 1];
  /** @type {Record<string, Bar | undefined>} */
  const ways = {
    ArrowLeft: row.bars[at - 1],
    ArrowRight: row.bars[at + 1],
    ArrowUp: nearest(above, bar),
    ArrowDown: nearest(below, bar),
    Home: row.bars[0],
    End: row.bars.at(-1),
  };
  if (!(event.key in ways)) return;
  event.preventDefault();
  const next = ways[event.key];
  if (!next) return;
  choose({ at: next.key });
  const grid = /** @type {HTMLElement} */ (event.currentTarget).closest(".tl-grid");
  /** @type {HTMLElement | null | undefined} */ (grid?.querySelector(`[data-bar="${CSS.escape(next.key)}"]`))?.focus();
}

/** @param {Row | undefined} row @param {Bar} bar */
function nearest(row, bar) {
  return row?.bars.reduce((best, other) => (Math.abs(other.from - bar.from) < Math.abs(best.from - bar.from) ? other : best));
}

/** What is known of the bar that is looked at. It has its place always. @param {Bar | undefined} bar @param {number} from @param {boolean} hasBreaks */
function facts(bar, from, hasBreaks) {
  return h(
    "div",
    { class: "tl-facts", key: "facts" },
    bar
      ? [
          h("strong", { "data-tone": bar.tone }, bar.label),
          h("span", null, `at ${duration(bar.from - from)}, ${bar.open ? `${duration(bar.to - bar.from)} so far` : `took ${duration(bar.to - bar.from)}`}`),
          bar.facts.map(([name, value]) => h("span", null, name ? h("small", null, `${name} `) : null, value)),
        ]
      : null,
    hasBreaks ? h("span", { class: "tl-note" }, "hatched: a long wait, drawn shorter") : null,
  );
}

/** @param {Row[]} rows @param {number} from @param {boolean} isShown @param {(chosen: Partial<Chosen>) => void} choose */
function table(rows, from, isShown, choose) {
  const count = rows.reduce((sum, row) => sum + row.bars.length, 0);
  return h(
    "details",
    { class: "tl-table", key: "table", ontoggle: (/** @type {Event} */ event) => choose({ showTable: /** @type {HTMLDetailsElement} */ (event.target).open }) },
    h("summary", null, `As a table of ${counted(count, "line")}`),
    isShown
      ? h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "The timeline as a table" },
          h(
            "table",
            null,
            h("thead", null, h("tr", null, ["Row", "What", "From", "Took", "More"].map((name) => h("th", { scope: "col" }, name)))),
            h(
              "tbody",
              null,
              rows.flatMap((row) =>
                row.bars.map((bar) =>
                  h(
                    "tr",
                    { key: `${row.key}/${bar.key}` },
                    h("td", null, row.name),
                    h("td", null, bar.label),
                    h("td", { class: "number" }, duration(bar.from - from)),
                    h("td", { class: "number" }, `${duration(bar.to - bar.from)}${bar.open ? " so far" : ""}`),
                    h("td", null, bar.facts.map(([name, value]) => (name ? `${name} ${value}` : value)).join("; ")),
                  ),
                ),
              ),
            ),
          ),
        )
      : null,
  );
}

/** @param {number} share */
function percent(share) {
  return `${(share * 100).toFixed(3)}%`;
}
