/** The arguments of a call for people to read and edit: a field for each, and JSON for nested values. */

import { h } from "../core/dom.js";
import { pretty } from "./json.js";

/** @typedef {Record<string, any>} Arguments */

const LONG = 60; // characters from which a text has a field of several lines

/** Each by its name; a text is shown as it is. @param {Arguments} given @param {string} name */
export function argumentList(given, name) {
  const entries = Object.entries(given);
  if (!entries.length) return h("p", { class: "muted", key: "arguments" }, "It takes no arguments.");
  return h(
    "dl",
    { class: "arguments", key: "arguments", "aria-label": name },
    entries.map(([field, value]) => [h("dt", { key: `dt ${field}` }, field), h("dd", { key: `dd ${field}`, "data-kind": kindOf(value), dir: typeof value === "string" ? "auto" : "ltr" }, shown(value))]),
  );
}

/** @param {unknown} value */
function shown(value) {
  if (value === "") return h("em", { class: "muted" }, "an empty text");
  if (value === null) return h("em", { class: "muted" }, "null");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" || typeof value === "number" ? String(value) : pretty(value);
}

/** @param {unknown} value */
function kindOf(value) {
  if (value === null) return "json";
  return typeof value === "object" ? "json" : typeof value;
}

/** What the fields begin with. @param {Arguments} given @returns {Record<string, string>} */
export function fieldsOf(given) {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, null, kindOf(value) === "json" ? 2 : undefined)]));
}

/**
 * The arguments in the fields, or the problem with each invalid field.
 *
 * @param {Arguments} given
 * @param {Record<string, string>} fields
 * @returns {{value?: Arguments, wrong: string, field: string}}
 */
export function readFields(given, fields) {
  /** @type {Arguments} */
  const value = {};
  for (const [name, before] of Object.entries(given)) {
    const text = fields[name] ?? "";
    const kind = kindOf(before);
    if (kind === "string") value[name] = text;
    else {
      const read = parsedAs(kind, text);
      if (read.wrong) return { wrong: `${name}: ${read.wrong}`, field: name };
      value[name] = read.value;
    }
  }
  return { value, wrong: "", field: "" };
}

/** @param {string} kind @param {string} text @returns {{value?: any, wrong: string}} */
function parsedAs(kind, text) {
  try {
    const value = JSON.parse(text);
    if (kind === "number" && typeof value !== "number") return { wrong: "This must be a number" };
    if (kind === "boolean" && typeof value !== "boolean") return { wrong: "This must be yes or no" };
    return { value, wrong: "" };
  } catch {
    return { wrong: kind === "number" ? "This must be a number" : "This is not valid JSON" };
  }
}

/** Whether a browser reads every number exactly: one beyond 2^53 would be changed by editing another field. @param {unknown} value @returns {boolean} */
export function isExact(value) {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  return value === null || typeof value !== "object" || Object.values(value).every(isExact);
}

/**
 * @param {string} id
 * @param {Arguments} given
 * @param {Record<string, string>} fields
 * @param {string} wrong the field that is wrong
 * @param {(name: string, text: string) => void} changed
 */
export function argumentFields(id, given, fields, wrong, changed) {
  return Object.entries(given).map(([name, value], index) => {
    const kind = kindOf(value);
    const text = fields[name] ?? "";
    const own = {
      id: `${id}-${index}`,
      "aria-invalid": String(wrong === name),
      "aria-describedby": `${id}-wrong`,
      oninput: (/** @type {Event} */ event) => changed(name, /** @type {HTMLInputElement} */ (event.target).value),
    };
    return h("div", { class: "field", key: name }, h("label", { for: own.id }, name), control(kind, text, own, index === 0));
  });
}

/** @param {string} kind @param {string} text @param {Record<string, any>} own @param {boolean} isFirst */
function control(kind, text, own, isFirst) {
  const once = isFirst ? (/** @type {HTMLElement} */ field) => field.focus() : undefined;
  if (kind === "boolean") return h("select", { ...own, value: text, onchange: own.oninput, once }, h("option", { value: "true" }, "yes"), h("option", { value: "false" }, "no"));
  if (kind === "number") return h("input", { ...own, initial: text, inputmode: "decimal", autocomplete: "off", once });
  if (kind === "string" && text.length < LONG && !text.includes("\n")) return h("input", { ...own, initial: text, autocomplete: "off", dir: "auto", once });
  const rows = String(Math.min(16, Math.max(2, text.split("\n").length + 1)));
  return h("textarea", { ...own, class: kind === "json" ? "code" : "", rows, initial: text, dir: kind === "json" ? "ltr" : "auto", spellcheck: kind === "json" ? "false" : undefined, once });
}
