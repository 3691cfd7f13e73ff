/** The few marks that models write, as elements: headings, lists, code, bold, italics, links. All else stays text. */

import { h, isSafe } from "../core/dom.js";

/**
 * @typedef {import("../core/dom.js").VNode} VNode
 * @typedef {import("../core/dom.js").Loose} Loose
 */

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>)\]"']+)/g;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;
const LONGEST = 60_000;

/** @param {string} text */
export function markdown(text) {
  if (text.length > LONGEST) return h("div", { class: "prose plain" }, text);
  return h("div", { class: "prose" }, blocks(text.split("\n")));
}

/** @param {string[]} lines @returns {VNode[]} */
function blocks(lines) {
  /** @type {VNode[]} */
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const fence = /^\s*(```+|~~~+)\s*([\w+-]*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      const end = closing(lines, at + 1, fence[1] ?? "```");
      found.push(h("pre", { tabindex: "0", role: "region", "aria-label": fence[2] || "code" }, h("code", null, lines.slice(at + 1, end).join("\n"))));
      at = end + 1;
    } else if (heading) {
      // The page has headings of its own: those of an answer stand below them.
      found.push(h("p", { class: "heading", role: "heading", "aria-level": "4" }, inline(heading[2] ?? "")));
      at += 1;
    } else if (ITEM.test(line)) {
      const end = until(lines, at, (other) => !ITEM.test(other) && !/^\s+\S/.test(other));
      found.push(list(lines.slice(at, end)));
      at = end;
    } else if (/^\s*>/.test(line)) {
      const end = until(lines, at, (other) => !/^\s*>/.test(other));
      found.push(h("blockquote", null, blocks(lines.slice(at, end).map((other) => other.replace(/^\s*> ?/, "")))));
      at = end;
    } else if (!line.trim()) {
      at += 1;
    } else {
      const end = until(lines, at, (other) => !other.trim() || /^\s*(```|~~~|#{1,6}\s|>)/.test(other) || ITEM.test(other));
      found.push(h("p", null, inline(lines.slice(at, end).join("\n"))));
      at = end;
    }
  }
  return found;
}

/** @param {string[]} lines @returns {VNode} */
function list(lines) {
  /** @type {string[][]} */
  const items = [];
  for (const line of lines) {
    if (ITEM.test(line) && (!/^\s{2,}/.test(line) || !items.length)) items.push([line.replace(ITEM, "")]);
    else items.at(-1)?.push(line.replace(/^\s{1,4}/, ""));
  }
  const first = /^\s*(\d+)/.exec(lines[0] ?? "");
  const content = items.map((item) => {
    const nested = item.findIndex((line, index) => index > 0 && ITEM.test(line));
    const own = nested < 0 ? item : item.slice(0, nested);
    return h("li", null, inline(own.join("\n")), nested < 0 ? null : list(item.slice(nested)));
  });
  return first ? h("ol", { start: first[1] }, content) : h("ul", null, content);
}

/** @param {string} text @returns {Loose[]} */
function inline(text) {
  /** @type {Loose[]} */
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(at, match.index));
    const [whole, , code, bold, italic, label, labelled, bare] = match;
    if (code !== undefined) found.push(h("code", null, code.trim()));
    else if (bold !== undefined) found.push(h("strong", null, bold));
    else if (italic !== undefined) found.push(h("em", null, italic));
    else if (labelled !== undefined) found.push(label ?? "", " (", away(labelled), ")");
    else if (bare !== undefined) found.push(away(bare));
    else found.push(whole);
    at = (match.index ?? 0) + whole.length;
  }
  found.push(text.slice(at));
  return found;
}

/** A link shows where it leads. @param {string} address */
function away(address) {
  return isSafe(address) ? h("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, address) : address;
}

/** @param {string[]} lines @param {number} from @param {string} fence */
function closing(lines, from, fence) {
  return until(lines, from - 1, (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0] ?? "`", "") === "");
}

/** The first line behind `from` that ends it. @param {string[]} lines @param {number} from @param {(line: string) => boolean} ends */
function until(lines, from, ends) {
  const found = lines.findIndex((line, index) => index > from && ends(line));
  return found < 0 ? lines.length : found;
}
