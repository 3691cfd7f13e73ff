/** An hour as a row of bars, one for each minute, with a figure next to it. */

import { h } from "../core/dom.js";

/**
 * @param {string} name
 * @param {import("../core/dom.js").Loose} figure
 * @param {(number | null)[]} values a minute each, the last one now
 * @param {{tone?: string, title: string, of: (value: number) => string}} how `of`: a value in words
 */
export function sparkline(name, figure, values, { tone = "run", title, of }) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0);
  const summary = known.length && most > 0 ? `at most ${of(most)} in a minute` : "nothing in the last hour";
  return h(
    "div",
    { class: "spark", title },
    h("div", { class: "spark-head" }, h("span", { class: "spark-name" }, name), h("strong", null, figure)),
    h(
      "div",
      { class: "spark-bars", role: "img", "aria-label": `${name}, the last hour: ${summary}` },
      values.map((value, index) => h("i", { key: index, "data-tone": tone, "data-none": value ? "no" : "yes", style: { height: `${value && most ? Math.max(6, (100 * value) / most).toFixed(1) : 2}%` } })),
    ),
  );
}
