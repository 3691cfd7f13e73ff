/** A button that begins a chat in a new session with a random id. */

import { go, link } from "../core/address.js";
import { h } from "../core/dom.js";

/** An unused session id of 52 random bits, with the caller's prefix if its sessions must have one. */
export function newSessionId(prefix = "") {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return `${prefix}chat-${(high & 0xfffff).toString(36)}${low.toString(36)}`;
}

/** @param {string} [label] */
export function newChatButton(label = "New chat") {
  return h("button", { class: "button primary", type: "button", onclick: () => go(link(["sessions", newSessionId(ownPrefix())])), key: "new-chat" }, label);
}

/** @type {readonly string[]} */
let prefixes = [];

/** What sessions the caller has, once that is known. @param {readonly string[]} own */
export function sessionsAre(own) {
  prefixes = own;
}

/** The prefix that the caller's sessions must have, or "" if any id is allowed. */
export function ownPrefix() {
  return prefixes.includes("*") ? "" : (prefixes.find((one) => /[^A-Za-z0-9]$/.test(one)) ?? prefixes[0] ?? "");
}
