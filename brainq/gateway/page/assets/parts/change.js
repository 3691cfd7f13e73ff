/** The change that a call makes, if its arguments show it: a text before and after, or a diff. */

import { unifiedDiff, valueDiff } from "./diff.js";

const BEFORE = ["old_text", "old_string", "old_str", "before"];
const AFTER = ["new_text", "new_string", "new_str", "after"];
const DIFFS = ["diff", "patch"];

/** @param {any} given arguments @param {string} name @returns {import("../core/dom.js").Loose} */
export function changeOf(given, name) {
  if (given === null || typeof given !== "object") return null;
  const first = (/** @type {string[]} */ fields) => fields.map((field) => given[field]).find((value) => typeof value === "string");
  const [before, after, diff] = [first(BEFORE), first(AFTER), first(DIFFS)];
  if (before !== undefined && after !== undefined) return valueDiff(before, after, name);
  return diff === undefined ? null : unifiedDiff(diff, name);
}
