/** What a turn changed and cost, and what the finalizer did after its answer. */

import { h } from "../core/dom.js";
import { ago } from "../core/when.js";
import { counted, dollars } from "../core/words.js";
import { actionButton, said } from "./action.js";
import { badge } from "./bits.js";
import { unifiedDiff } from "./diff.js";

/** Tries that failed cost nothing, and were made. @param {import("../live/fold.js").Step[]} steps @param {boolean} isOver */
function nothingSpent(steps, isOver) {
  const tries = steps.reduce((total, step) => total + step.retries.length + 1, 0);
  if (!isOver) return "No model call has ended yet.";
  return tries ? `${counted(tries, "try", "tries")} of the model failed; none was charged.` : "No model call was made.";
}

/** As the result has them; while the turn runs, what its events tell of its steps. @param {any} result @param {import("../live/fold.js").Step[]} steps @param {boolean} isOver */
export function costs(result, steps, isOver) {
  const isRunning = !result?.spends?.length;
  const spends = result?.spends ?? steps.filter((step) => step.inputTokens).map(running);
  const cached = spends.some((/** @type {any} */ spend) => spend.cache_read_tokens);
  const about = (/** @type {any} */ spend) => (spend.estimated ? "~" : "");
  return h(
    "section",
    { class: "panel", key: "costs" },
    h("h2", null, "Tokens and costs"),
    spends.length ? null : h("p", { class: "muted" }, nothingSpent(steps, isOver)),
    !spends.length ? null : h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Costs by model call" },
      h(
        "table",
        null,
        h("thead", null, h("tr", null, (isRunning ? ["Step", "In", "Out"] : ["Step", "Model", "In", "Out", ...(cached ? ["Cached"] : []), "Cost"]).map((name) => h("th", { scope: "col", class: ["Step", "Model"].includes(name) ? "" : "number", key: name }, name)))),
        h(
          "tbody",
          null,
          spends.map((/** @type {any} */ spend, /** @type {number} */ index) =>
            h(
              "tr",
              { key: index },
              h("td", null, spend.kind === "step" ? String(spend.step) : `${spend.step}, ${spend.kind}`),
              isRunning ? null : h("td", { class: "mono" }, spend.model),
              h("td", { class: "number" }, about(spend) + spend.input_tokens.toLocaleString("en")),
              h("td", { class: "number" }, about(spend) + spend.output_tokens.toLocaleString("en")),
              cached ? h("td", { class: "number" }, spend.cache_read_tokens.toLocaleString("en")) : null,
              isRunning ? null : h("td", { class: "number" }, dollars(spend.cost_usd)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {import("../live/fold.js").Step} step */
function running(step) {
  return { step: step.step, kind: "step", model: "", input_tokens: step.inputTokens, output_tokens: step.outputTokens, cache_read_tokens: 0 };
}

/**
 * @param {import("../live/rows.js").FinalStep[]} steps
 * @param {ReturnType<typeof import("./turn_actions.js").turnActions>} actions
 */
export function finalizerSteps(steps, actions) {
  if (!steps.length) return null;
  const dead = steps.filter((step) => step.state === "dead");
  return h(
    "section",
    { class: "panel", key: "finalizer" },
    h("h2", null, "Finalizer"),
    h(
      "ul",
      { class: "steps" },
      steps.map((step) =>
        h(
          "li",
          { key: step.step },
          h("span", null, step.step),
          badge(step.state),
          h("span", { class: "muted" }, ago(step.to)),
          step.error ? h("span", { class: "error" }, step.error) : null,
          step.state === "dead" ? actionButton(`Run ${step.step} again`, actions.mending, () => actions.retry(step.step)) : null,
        ),
      ),
    ),
    dead.length > 1 ? h("div", { class: "buttons" }, actionButton("Run all again", actions.mending, () => actions.retry(""))) : null,
    said(actions.mending),
  );
}

/** How the turn came to its answer. @param {any} record */
export function decision(record) {
  if (!record) return null;
  /** @type {[string, string][]} */
  const facts = [
    ["Strategy", record.strategy.replaceAll("_", " ")],
    ["Tools", record.tools.join(", ")],
    ["Prompt", [record.prompt_id, record.prompt_version, ...record.prompt_tags].filter(Boolean).join(" ")],
    ["Prompt hash", record.prompt_hash],
    ["Context hash", record.context_hash],
  ];
  return h(
    "section",
    { class: "panel", key: "decision" },
    h("h2", null, "Decision"),
    h("dl", { class: "facts" }, facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", { key: name }, name), h("dd", { key: `${name}-value` }, value)])),
  );
}

/** @param {any} result */
export function warnings(result) {
  const told = [...(result?.error ? [result.error] : []), ...(result?.warnings ?? [])];
  return told.length ? h("ul", { class: "warnings", key: "warnings" }, told.map((text) => h("li", { key: text, dir: "auto" }, text))) : null;
}

/** @param {any} result @param {import("../live/fold.js").Turn} events */
export function changes(result, events) {
  const diff = events.diff || result?.diff;
  return diff ? h("section", { class: "panel", key: "changes" }, h("h2", null, "What it changed"), unifiedDiff(diff, "What it changed")) : null;
}

/** @param {any} result */
export function citations(result) {
  const all = [...(result?.local_citations ?? []), ...(result?.web_citations ?? [])];
  return all.length
    ? h("section", { class: "panel", key: "citations" }, h("h2", null, "Sources"), h("ul", null, all.map((one) => h("li", { key: one.source, title: one.quote }, one.title ? `${one.title} · ` : "", h("span", { class: "mono" }, one.source)))))
    : null;
}
