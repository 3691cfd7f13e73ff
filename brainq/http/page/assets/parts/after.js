/** What a turn cost, and what went wrong. */

import { h } from "../core/dom.js";
import { dollars, wordOf } from "../core/words.js";

/** As the result has them; while the turn runs, what its events tell of its steps. @param {any} result @param {import("../live/fold.js").Step[]} steps */
export function costs(result, steps) {
  const spends = result?.spends ?? steps.filter((step) => step.inputTokens).map(running);
  const cached = spends.some((/** @type {any} */ spend) => spend.cache_read_tokens);
  const about = (/** @type {any} */ spend) => (spend.estimated ? "~" : "");
  return h(
    "section",
    { class: "panel", key: "costs" },
    h("h2", null, "Tokens and costs"),
    spends.length ? null : h("p", { class: "muted" }, "No model call has ended yet."),
    !spends.length ? null : h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Costs by model call" },
      h(
        "table",
        null,
        h("thead", null, h("tr", null, ["Step", "Model", "In", "Out", ...(cached ? ["Cached"] : []), "Cost"].map((name, index) => h("th", { scope: "col", class: index > 1 ? "number" : "" }, name)))),
        h(
          "tbody",
          null,
          spends.map((/** @type {any} */ spend, /** @type {number} */ index) =>
            h(
              "tr",
              { key: index },
              h("td", null, spend.kind === "step" ? String(spend.step) : `${spend.step}, ${spend.kind}`),
              h("td", { class: "mono" }, spend.model),
              h("td", { class: "number" }, about(spend) + spend.input_tokens.toLocaleString("en")),
              h("td", { class: "number" }, about(spend) + spend.output_tokens.toLocaleString("en")),
              cached ? h("td", { class: "number" }, spend.cache_read_tokens.toLocaleString("en")) : null,
              h("td", { class: "number" }, spend.isRunning ? "" : dollars(spend.cost_usd)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {import("../live/fold.js").Step} step */
function running(step) {
  return { step: step.step, kind: "step", model: "", input_tokens: step.inputTokens, output_tokens: step.outputTokens, cache_read_tokens: 0, isRunning: true };
}

/** @param {any} result */
export function warnings(result) {
  const told = [...(result?.error ? [`${wordOf(result.ending)}: ${result.error}`] : []), ...(result?.warnings ?? [])];
  return told.length ? h("ul", { class: "warnings", key: "warnings" }, told.map((text) => h("li", { key: text }, text))) : null;
}
