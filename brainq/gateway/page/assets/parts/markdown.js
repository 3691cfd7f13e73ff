/**
 * Markdown as elements: headings, lists, tasks, tables, code, rules, links. markdown-it parses it, and its tokens become
 * elements one by one, so a model's text is never interpreted as HTML.
 */

import { h, isSafe } from "../core/dom.js";
import MarkdownIt from "../vendor/markdown-it/markdown-it.js";
import { copyButton } from "./copy.js";

/**
 * @typedef {import("../core/dom.js").VNode} VNode
 * @typedef {import("../core/dom.js").Loose} Loose
 * @typedef {{type: string, tag: string, nesting: number, content: string, info: string, markup: string, children: Token[] | null,
 *   attrGet: (name: string) => string | null}} Token
 * @typedef {{token: Token, inside: Loose[]}} Open
 */

const LONGEST = 60_000;
const KEPT = 60; // texts whose elements are kept
const PAGE_HEADINGS = 3; // the page has headings of its own: those of an answer stand below them
const TASK = /^\[([ xX])\]\s+/;

// Without HTML, typography, or links made of bare words such as `example.org`.
const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: 20 });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });

/** Elements by their text: the same text is the same elements, which need no drawing. @type {Map<string, VNode>} */
const kept = new Map();

/** @param {string} text @returns {VNode} */
export function markdown(text) {
  const known = kept.get(text);
  if (known) return known;
  const made = text.length > LONGEST ? h("div", { class: "prose plain", dir: "auto" }, text) : h("div", { class: "prose" }, elements(parser.parse(text, {})));
  if (kept.size >= KEPT) kept.delete(/** @type {string} */ (kept.keys().next().value));
  kept.set(text, made);
  return made;
}

/** Nested elements of a flat row of tokens. @param {Token[]} tokens @returns {Loose[]} */
function elements(tokens) {
  /** @type {Open[]} */
  const open = [{ token: /** @type {any} */ (null), inside: [] }];
  for (const token of tokens) {
    const above = /** @type {Open} */ (open.at(-1));
    if (token.nesting === 1) open.push({ token, inside: [] });
    else if (token.nesting === -1 && open.length > 1) {
      open.pop();
      /** @type {Open} */ (open.at(-1)).inside.push(element(above.token, above.inside));
    } else above.inside.push(leaf(token));
  }
  return /** @type {Open} */ (open[0]).inside;
}

/** @param {Token} token @param {Loose[]} inside @returns {Loose} */
function element(token, inside) {
  switch (token.type) {
    case "heading_open": {
      const size = Number(token.tag.slice(1));
      return h("p", { class: "heading", "data-size": String(size), role: "heading", "aria-level": String(size + PAGE_HEADINGS), dir: "auto" }, inside);
    }
    case "paragraph_open":
      return h("p", { dir: "auto" }, inside);
    case "list_item_open":
      return item(inside);
    case "ordered_list_open":
      return h("ol", { start: token.attrGet("start") ?? undefined }, inside);
    case "table_open":
      return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "A table" }, h("table", null, inside));
    case "th_open":
    case "td_open":
      return h(token.tag, { dir: "auto", "data-align": /text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1], scope: token.tag === "th" ? "col" : undefined }, inside);
    case "link_open":
      return link(token.attrGet("href") ?? "", inside);
    case "s_open":
      return h("del", null, inside);
    case "bullet_list_open":
    case "blockquote_open":
    case "thead_open":
    case "tbody_open":
    case "tr_open":
    case "strong_open":
    case "em_open":
      return h(token.tag, null, inside);
    default:
      return inside;
  }
}

/** @param {Token} token @returns {Loose} */
function leaf(token) {
  switch (token.type) {
    case "inline":
      return elements(token.children ?? []);
    case "fence":
    case "code_block":
      return code(token.content.replace(/\n$/, ""), token.info.trim().split(/\s/, 1)[0] ?? "");
    case "code_inline":
      return h("code", null, token.content);
    case "hr":
      return h("hr", null);
    case "hardbreak":
    case "softbreak":
      return "\n";
    case "image": // nothing is asked of anybody else for what a model wrote: it is named
      return [textOf(token.children ?? []), " (", away(token.attrGet("src") ?? ""), ")"];
    default:
      return token.content;
  }
}

/** @param {string} text @param {string} language */
function code(text, language) {
  return h("div", { class: "code-block" }, h("pre", { tabindex: "0", role: "region", "aria-label": language || "code" }, h("code", { dir: "ltr" }, text)), copyButton(text, "code"));
}

/** A list's item; one that begins with `[ ]` or `[x]` is a task. @param {Loose[]} inside */
function item(inside) {
  const paragraph = /** @type {VNode | undefined} */ (inside[0]);
  const own = paragraph?.tag === "p" ? paragraph.children : [];
  const task = typeof own[0] === "string" ? TASK.exec(own[0]) : null;
  if (!paragraph || !task) return h("li", { dir: "auto" }, inside);
  const isDone = task[1] !== " ";
  const rest = [/** @type {string} */ (own[0]).slice(task[0].length), ...own.slice(1)];
  const box = h("input", { type: "checkbox", disabled: true, checked: isDone, "aria-label": isDone ? "done" : "not done" });
  return h("li", { class: "task", dir: "auto" }, h("p", null, box, " ", rest), inside.slice(1));
}

/** A link shows where it leads. @param {string} address @param {Loose[]} label */
function link(address, label) {
  const shown = plain(label);
  if (!/^https?:/i.test(address)) return [label, " (", address, ")"];
  return shown === address || `${shown}/` === address ? away(address) : [label, " (", away(address), ")"];
}

/** @param {string} address */
function away(address) {
  return isSafe(address) && !address.startsWith("#") ? h("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, address) : address;
}

/** @param {Token[]} tokens */
function textOf(tokens) {
  return tokens.map((token) => token.content).join("");
}

/** @param {Loose} child @returns {string} */
function plain(child) {
  if (Array.isArray(child)) return child.map(plain).join("");
  if (typeof child === "object" && child !== null) return child.children.map(plain).join("");
  return typeof child === "string" ? child : "";
}
