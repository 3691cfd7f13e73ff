/** Input that was sent into turns from this view, and its receipts. */

import { ask, enc } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { badge } from "./bits.js";

const ASKED_MS = 1_500;

/**
 * Keeps the receipts of what was sent from this view, and asks again until each is settled.
 *
 * @param {string} turnId
 * @param {() => void} update
 */
export function receipts(turnId, update) {
  /** @type {Map<string, {text: string, receipt: any}>} */
  const sent = new Map();
  const timer = setInterval(() => !document.hidden && look(), ASKED_MS);

  async function look() {
    for (const [id, known] of sent) {
      if (known.receipt.state !== "accepted") continue;
      try {
        known.receipt = await ask("GET", `v1/turns/${enc(turnId)}/input/${enc(id)}`);
        update();
      } catch {
        return; // the connection's trouble is told elsewhere; it is asked for again
      }
    }
  }

  return {
    /** Send input; its id makes a second try the same input. @param {string} text @param {string} id */
    async send(text, id) {
      const receipt = await ask("POST", `v1/turns/${enc(turnId)}/input`, { body: { text, client_message_id: id } });
      sent.set(receipt.client_message_id, { text, receipt });
      update();
      return receipt;
    },
    look,
    stop: () => clearInterval(timer),
    render: () =>
      sent.size
        ? h(
            "ul",
            { class: "receipts", key: "receipts", "aria-label": "Input you sent", "aria-live": "polite" },
            [...sent.values()].map(({ text, receipt }) =>
              h("li", { key: receipt.client_message_id, "data-state": receipt.state }, badge(receipt.state), h("span", { class: "said-text" }, text), fate(receipt)),
            ),
          )
        : null,
  };
}

/** @param {any} receipt */
function fate(receipt) {
  if (receipt.state === "accepted") return h("span", { class: "muted" }, "waits for the next step");
  if (receipt.state === "consumed") return h("span", { class: "muted" }, `by step ${receipt.step}`);
  if (receipt.bounced_turn_id) return h("a", { href: link(["turns", receipt.bounced_turn_id]) }, `turn ${receipt.bounced_turn_id}`);
  return null;
}

/** An id for what is said once, however often it has to be sent. @param {string} prefix */
export function messageId(prefix) {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return `${prefix}-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
