/** Budgets in their current windows: what is left, how many turns are parked for each, and a way to raise one. */

import { ask } from "../core/api.js";
import { h } from "../core/dom.js";
import { source } from "../core/source.js";
import { dollars } from "../core/words.js";
import { action, actionButton, said } from "./action.js";

const MOST_SHOWN = 50;

/** `81 %; notice sent 14:02`. @param {any} one @param {number} cap */
function used(one, cap) {
  const share = cap ? `${Math.round((100 * (one.spent_usd + one.held_usd)) / cap)} %` : "–";
  return one.noticed_at ? `${share}; notice sent ${at(one)}` : share;
}

/** In the window's terms: its day, or the time of day. @param {any} one */
function at(one) {
  const month = /** @type {const} */ ({ month: "short", day: "numeric" });
  return new Date(one.noticed_at).toLocaleString([], { hour: "2-digit", minute: "2-digit", ...(one.per === "month" ? month : {}) });
}

/** @param {() => void} update */
export function budgetsPanel(update) {
  const budgets = source((signal) => ask("GET", "v1/budgets", { signal }), update, { every: 5_000 });
  const raising = action(update);
  let amount = "1";

  /** @param {any} one */
  const raise = async (one) => {
    await raising.run(async () => {
      const { cap_usd } = await ask("POST", "v1/budgets/raise", { body: { scope: one.scope, per: one.per, usd: Number(amount) } });
      return `The budget of ${one.scope} is now ${dollars(cap_usd)} for this ${one.per}. Turns that were parked for it resume.`;
    });
    budgets.refresh();
  };

  /** @param {any} one */
  function row(one) {
    const cap = one.usd + one.raised_usd;
    const left = Math.max(0, cap - one.spent_usd - one.held_usd);
    const isOne = !one.scope.endsWith("(each)");
    return h(
      "tr",
      { key: `${one.scope}/${one.per}` },
      h("td", { class: "strong" }, one.scope),
      h("td", null, one.per),
      h("td", null, dollars(cap)),
      h("td", null, isOne ? dollars(one.spent_usd) : "–"),
      h("td", null, isOne ? (one.is_spent ? h("span", { class: "bad" }, "spent") : dollars(left)) : "–"),
      h("td", null, isOne ? used(one, cap) : "–"),
      h("td", null, String(one.parked || "–")),
      h("td", null, one.at_cap),
      h("td", null, isOne ? actionButton(`Raise by ${dollars(Number(amount) || 0)}`, raising.outcome, () => raise(one), "", { "aria-label": `Raise ${one.scope} by ${amount} dollars this ${one.per}` }) : "–"),
    );
  }

  return {
    stop: () => budgets.stop(),
    /** @param {string[]} unpriced models whose price is not known */
    render(unpriced) {
      const found = budgets.value?.budgets ?? [];
      if (!found.length) return null;
      return h(
        "section",
        { class: "panel budgets", key: "budgets" },
        h("h2", null, "Budgets"),
        unpriced.length ? h("p", { class: "muted" }, `No price is known of ${unpriced.join(", ")}: no budget holds what that costs. Set max_total_tokens for its turns.`) : null,
        h("label", null, "Raise by, in dollars ", h("input", { type: "number", min: "0", step: "any", value: amount, oninput: (/** @type {any} */ event) => { amount = event.target.value; update(); } })),
        said(raising.outcome),
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "Budgets" },
          h("table", { "aria-label": "Budgets" }, h("thead", null, h("tr", null, ["Budget", "Window", "Amount", "Spent", "Left", "Used", "Parked", "At the cap", "Raise"].map((column) => h("th", { scope: "col", key: column }, column)))), h("tbody", null, found.slice(0, MOST_SHOWN).map(row))),
        ),
      );
    },
  };
}
