/** The page's keys, and the list of them: `/` finds, `j` and `k` go down and up a list, `?` shows this. */

import { go } from "../core/address.js";
import { h } from "../core/dom.js";

const KEYS = [
  ["/", "Find turns"],
  ["j  k", "Next, previous in a list"],
  ["Enter", "Open it"],
  ["c", "New chat"],
  ["t  s  a  f", "Turns, sessions, approvals, fleet"],
  ["← → ↑ ↓", "From bar to bar in a timeline"],
  ["?", "Show or hide these keys"],
];
/** @type {Record<string, string>} */
const VIEWS = { t: "#/turns", s: "#/sessions", a: "#/approvals", f: "#/fleet" };
const ROWS = "main :is(.c-message a, .c-session a, .c-last a, .approval .origin a)";

let isShown = false;
/** @type {HTMLElement | null} what had the focus before */
let before = null;

/** @param {() => void} update @param {() => void} newChat */
export function listenForKeys(update, newChat) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isShown) return show(false, update);
    if (isTyping(event.target)) return;
    const done = act(event.key, update, newChat);
    if (done) event.preventDefault();
  });
}

/** @param {string} key @param {() => void} update @param {() => void} newChat */
function act(key, update, newChat) {
  if (key === "?") show(!isShown, update);
  else if (key === "/") find();
  else if (key === "j") move(1);
  else if (key === "k") move(-1);
  else if (key === "c") newChat();
  else if (VIEWS[key]) go(/** @type {string} */ (VIEWS[key]));
  else return false;
  return true;
}

/** Whether keys are text where the focus is. @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

/** Focus the search field. A view without one first changes to the list of turns. */
function find() {
  const field = () => /** @type {HTMLElement | null} */ (document.querySelector('main input[type="search"]'));
  if (field()) return field()?.focus();
  go("#/turns");
  // The view exists once the changed address has been drawn.
  addEventListener("hashchange", () => requestAnimationFrame(() => requestAnimationFrame(() => field()?.focus())), { once: true });
}

/** @param {number} by */
function move(by) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(ROWS)]);
  const at = rows.findIndex((row) => row === document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: "nearest" });
}

/** @param {boolean} on @param {() => void} update */
function show(on, update) {
  if (on) before = /** @type {HTMLElement | null} */ (document.activeElement);
  isShown = on;
  update();
  if (!on) before?.focus();
}

/** @param {() => void} update */
export function keyHelp(update) {
  if (!isShown) return null;
  return h(
    "div",
    { class: "veil", key: "keys", onclick: (/** @type {Event} */ event) => event.target === event.currentTarget && show(false, update) },
    h(
      "div",
      { class: "dialog", role: "dialog", "aria-modal": "true", "aria-label": "Keyboard shortcuts" },
      h("h2", null, "Keyboard shortcuts"),
      h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", { key }, (key ?? "").split("  ").map((one) => h("kbd", { key: one }, one))), h("dd", { key: `${key} what` }, what)])),
      h("button", { class: "button", type: "button", onclick: () => show(false, update), once: (/** @type {HTMLElement} */ button) => button.focus() }, "Close"),
    ),
  );
}

/** @param {() => void} update */
export function keysButton(update) {
  return h("button", { class: "quiet side-button keys-button", type: "button", title: "Keyboard shortcuts (?)", "aria-label": "Show the keyboard shortcuts", onclick: () => show(!isShown, update), key: "keys" }, h("kbd", { "aria-hidden": "true" }, "?"), h("span", { class: "side-name" }, "Shortcuts"));
}
