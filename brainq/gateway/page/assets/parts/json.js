/** JSON or text as a block, indented, and cut if it is long. */

import { h } from "../core/dom.js";
import { copyButton } from "./copy.js";

const MOST = 4_000;

/** @type {Set<string>} blocks that were opened whole */
const whole = new Set();

/**
 * @param {unknown} value
 * @param {string} key names the block, so that it stays open
 * @param {() => void} update
 */
export function block(value, key, update) {
  const text = pretty(value);
  const isLong = text.length > MOST;
  const isWhole = whole.has(key);
  const open = () => {
    if (isWhole) whole.delete(key);
    else whole.add(key);
    update();
  };
  return h(
    "div",
    { class: "block", key },
    h("pre", { tabindex: "0", role: "region", "aria-label": key }, isLong && !isWhole ? `${text.slice(0, MOST)}…` : text),
    copyButton(text, (key.split(" ", 1)[0] ?? "").toLowerCase()),
    isLong
      ? h("button", { class: "quiet", type: "button", onclick: open }, isWhole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`)
      : null,
  );
}

/** @param {unknown} value */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  const text = value.trim();
  if (!/^[[{]/.test(text) || text.length > 200_000) return value;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return value;
  }
}

/** Arguments in one line, for a list. @param {unknown} value @param {number} [most] */
export function inLine(value, most = 120) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? value : Object.entries(value).map(([name, given]) => `${name}=${JSON.stringify(given)}`).join(", ");
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
