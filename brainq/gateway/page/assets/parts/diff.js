/** Changes line by line: a unified diff, or a comparison of two values. */

import { h } from "../core/dom.js";
import { pretty } from "./json.js";

const MOST_LINES = 400;
const MOST_COMPARED = 1_500;

/** @param {string} text a unified diff @param {string} name */
export function unifiedDiff(text, name) {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.slice(0, MOST_LINES).map((line) => {
    if (/^(\+\+\+|---|diff|index|new file|deleted file) ?/.test(line)) return row("file", line);
    if (line.startsWith("@@")) return row("hunk", line);
    return row(line[0] === "+" ? "more" : line[0] === "-" ? "less" : "same", line);
  });
  return h(
    "pre",
    { class: "diff", tabindex: "0", role: "region", "aria-label": name },
    shown,
    lines.length > MOST_LINES ? row("hunk", `… ${lines.length - MOST_LINES} more lines`) : null,
  );
}

/** What differs between two values' pretty JSON. @param {unknown} before @param {unknown} after @param {string} name */
export function valueDiff(before, after, name) {
  const lines = compared(pretty(before).split("\n"), pretty(after).split("\n"));
  return h("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": name }, lines.map(([kind, line]) => row(kind, SIGNS[kind] + line)));
}

/** @type {Record<string, string>} */
const SIGNS = { more: "+ ", less: "- ", same: "  " };

/** @param {string} kind @param {string} line */
function row(kind, line) {
  return h("span", { class: `line ${kind}` }, `${line}\n`);
}

/**
 * Lines in the longest common subsequence are unchanged.
 *
 * @param {string[]} before
 * @param {string[]} after
 * @returns {["more" | "less" | "same", string][]}
 */
export function compared(before, after) {
  if (before.length * after.length > MOST_COMPARED ** 2) {
    return [...before.map((line) => /** @type {["less", string]} */ (["less", line])), ...after.map((line) => /** @type {["more", string]} */ (["more", line]))];
  }
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  const at = (/** @type {number} */ i, /** @type {number} */ j) => common[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  /** @type {["more" | "less" | "same", string][]} */
  const found = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      found.push(["same", before[i] ?? ""]);
      i += 1;
      j += 1;
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1))) {
      found.push(["less", before[i] ?? ""]);
      i += 1;
    } else {
      found.push(["more", after[j] ?? ""]);
      j += 1;
    }
  }
  return found;
}
