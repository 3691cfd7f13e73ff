/**
 * Concurrent calls of one tool as one bar: 128 reads are one line, which shows how many of them failed.
 *
 * @typedef {import("./rows.js").Bar} Bar
 */

import { counted } from "../core/words.js";

export const FOLDED_FROM = 6; // so many of one kind, and more, become one

/** @param {Bar[]} bars of one row @returns {Bar[]} */
export function foldedBars(bars) {
  /** @type {Map<string, Bar[]>} */
  const found = new Map();
  bars.forEach((bar, index) => {
    const key = kindOf(bar) || `alone ${index}`;
    found.set(key, [...(found.get(key) ?? []), bar]);
  });
  return [...found.values()].flatMap((group) => (group.length < FOLDED_FROM ? group : [folded(group)]));
}

/**
 * Group neighbours of the same kind, in order. An item of an empty kind is a group of its own.
 *
 * @template T
 * @param {T[]} all
 * @param {(one: T) => string} kind
 * @returns {T[][]}
 */
export function runs(all, kind) {
  /** @type {T[][]} */
  const found = [];
  all.forEach((one, index) => {
    const before = all[index - 1];
    const isSame = before !== undefined && kind(one) !== "" && kind(one) === kind(before);
    if (isSame) found.at(-1)?.push(one);
    else found.push([one]);
  });
  return found;
}

/** Calls of one tool in one step that came to the same: what failed, or still runs, is not hidden among the rest. @param {Bar} bar */
function kindOf(bar) {
  const step = /^c(\d+)-/.exec(bar.call ?? "")?.[1];
  return step === undefined ? "" : `${step} ${bar.label} ${bar.tone} ${bar.open}`;
}

/** @param {Bar[]} group @returns {Bar} */
function folded(group) {
  const [first] = group;
  const one = /** @type {Bar} */ (first);
  const from = Math.min(...group.map((bar) => bar.from));
  const to = Math.max(...group.map((bar) => bar.to));
  const status = one.facts.find(([name]) => name === "status" || name === "outcome")?.[1] ?? "";
  return {
    ...one,
    key: `folded ${one.key}`,
    from,
    to,
    label: `${one.label} × ${group.length}`,
    parts: [],
    calls: group.map((bar) => bar.call ?? ""),
    facts: [["", `${counted(group.length, "call")}${status ? `, all ${status}` : ""}`]],
  };
}
