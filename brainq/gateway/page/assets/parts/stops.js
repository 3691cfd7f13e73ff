/** The stops: a list, a button to lift each, and a form to stop something by name. */

import { ask, enc } from "../core/api.js";
import { h } from "../core/dom.js";
import { duration } from "../core/when.js";
import { knownBrains } from "../live/brains.js";
import { action, actionButton, said } from "./action.js";

const KINDS = ["tool", "model", "brain", "server", "tenant"];
const HOW = { pause: "Pause: affected calls wait", forbid: "Forbid: affected calls are refused" };

/** A tenant without its colon. @param {string} name */
const bare = (name) => name.replace(/:$/, "");

/** `tool send_email of tenant acme`. @param {any} stop */
export function subjectOf(stop) {
  return `${stop.kind} ${bare(stop.name)}${stop.tenant ? ` of tenant ${bare(stop.tenant)}` : ""}`;
}

/** What lifts it. @param {any} stop */
export function liftOf(stop) {
  return `v1/stops/${enc(stop.kind)}/${enc(stop.name)}${stop.tenant ? `?tenant=${enc(stop.tenant)}` : ""}`;
}

/**
 * @param {() => void} update
 * @param {() => void} changed called when something was stopped or lifted
 */
export function stopsPanel(update, changed) {
  const doing = action(update);
  const asked = { kind: "tool", name: "", tenant: "", mode: "pause", reason: "" };

  const stop = async () => {
    const body = { ...asked, name: asked.name.trim(), tenant: asked.kind === "tenant" ? "" : asked.tenant.trim() };
    const done = await doing.run(async () => {
      const made = await ask("POST", "v1/stops", { body });
      return `${subjectOf(made)} is ${made.mode === "pause" ? "paused" : "forbidden"} on every worker. Calls that have begun continue.`;
    });
    if (done) Object.assign(asked, { name: "", tenant: "", reason: "" });
    changed();
    update();
  };

  /** @param {any} one */
  const lift = async (one) => {
    await doing.run(async () => {
      await ask("DELETE", liftOf(one));
      return `${subjectOf(one)} is no longer stopped.`;
    });
    changed();
  };

  /** @param {any} one @param {boolean} areTimed */
  const row = (one, areTimed) =>
    h(
      "tr",
      { key: subjectOf(one) },
      h("td", { class: "strong" }, subjectOf(one)),
      h("td", null, h("span", { class: "bad" }, one.mode === "pause" ? "paused" : "forbidden")),
      h("td", null, actionButton("Lift", doing.outcome, () => lift(one), "", { "aria-label": `Lift the stop of ${subjectOf(one)}` })),
      h("td", null, one.by || "–"),
      areTimed ? h("td", { key: "ends" }, one.ends_in_s === null ? "–" : duration(one.ends_in_s * 1000)) : null,
      h("td", null, one.reason || "–"),
    );

  /** @param {"name" | "tenant" | "reason"} name @param {string} label @param {Record<string, any>} [more] */
  const field = (name, label, more = {}) =>
    h("label", { key: name }, `${label} `, h("input", { value: asked[name], maxlength: "200", oninput: (/** @type {any} */ event) => { asked[name] = event.target.value; }, ...more }));

  /** @param {"kind" | "mode"} name @param {string} label @param {string[][]} options */
  const choice = (name, label, options) =>
    h("label", { key: name }, `${label} `, h("select", { "aria-label": label, value: asked[name], onchange: (/** @type {any} */ event) => { asked[name] = event.target.value; update(); } }, options.map(([given, shown]) => h("option", { value: given, key: given }, shown ?? ""))));

  const form = () =>
    h(
      "details",
      { key: "stop" },
      h("summary", null, "Stop something…"),
      h(
        "form",
        { class: "stopping", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void stop(); } },
        choice("kind", "What", KINDS.map((kind) => [kind, kind])),
        field("name", "Name", { required: true, list: "stoppable", autocomplete: "off" }),
        h("datalist", { id: "stoppable", key: "stoppable" }, namesOf(asked.kind).map((name) => h("option", { value: name, key: name }))),
        asked.kind === "tenant" ? null : field("tenant", "Only of tenant"),
        choice("mode", "How", Object.entries(HOW)),
        field("reason", "Reason"),
        h("button", { class: "button bad", type: "submit", disabled: doing.outcome.busy, key: "submit" }, "Stop it"),
      ),
    );

  /** @param {any[]} found */
  const table = (found) => {
    const areTimed = found.some((one) => one.ends_in_s !== null);
    const columns = ["Subject", "Mode", "Lift", "By", ...(areTimed ? ["Ends in"] : []), "Reason"];
    const heads = columns.map((column) => h("th", { scope: "col", key: column }, column));
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stopped by operators", key: "table" },
      h("table", { "aria-label": "Stopped by operators" }, h("thead", null, h("tr", null, heads)), h("tbody", null, found.map((one) => row(one, areTimed)))),
    );
  };

  return {
    /** @param {any[]} found */
    render: (found) =>
      h(
        "section",
        { class: "panel because", key: "stops" },
        h("h2", null, "Stopped by operators"),
        found.length ? table(found) : h("p", { class: "muted", key: "none" }, "Nothing is stopped."),
        said(doing.outcome),
        form(),
      ),
  };
}

/** What a kind's names are, where the brains say. @param {string} kind */
function namesOf(kind) {
  const brains = knownBrains();
  if (kind === "brain") return brains.map((one) => one.name);
  if (kind === "model") return [...new Set(brains.map((one) => one.model))];
  if (kind === "tool") return [...new Set(brains.flatMap((one) => (one.tools ?? []).map((tool) => tool.name)))].sort();
  return [];
}
