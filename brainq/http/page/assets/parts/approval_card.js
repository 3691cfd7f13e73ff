/** One call that asks first: what it would do, and approve, deny, or approve with other arguments. */

import { ask, enc } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { ago, ms, now, duration } from "../core/when.js";
import { wordOf } from "../core/words.js";
import { action, actionButton, said } from "./action.js";
import { badge, idOf } from "./bits.js";
import { changeOf } from "./change.js";
import { valueDiff } from "./diff.js";
import { block } from "./json.js";

/**
 * Cards keep what is typed into them, by approval, for as long as their view is open.
 *
 * @param {() => void} update
 * @param {() => void} decided called once a decision is taken
 */
export function approvalCards(update, decided) {
  /** @type {Map<string, ReturnType<typeof begun>>} */
  const drafts = new Map();

  /** @param {any} approval */
  function begun(approval) {
    return { mode: "", text: JSON.stringify(approval.arguments, null, 2), reason: "", wrong: "", doing: action(update), of: approval.args_hash };
  }

  /** @param {any} approval @param {{inTurn?: boolean}} [where] */
  return function card(approval, { inTurn = false } = {}) {
    const draft = drafts.get(approval.id) ?? begun(approval);
    drafts.set(approval.id, draft);
    if (!draft.mode) Object.assign(draft, { text: JSON.stringify(approval.arguments, null, 2), of: approval.args_hash });
    const isPending = approval.state === "pending";
    const left = ms(approval.expires_at) - now();
    return h(
      "article",
      { class: "card approval", key: approval.id, "data-state": approval.state, "aria-label": `Approval of ${approval.tool}` },
      h(
        "header",
        null,
        h("h3", null, h("span", { class: "tool" }, approval.tool), h("span", { class: "effect", "data-effect": approval.effect }, approval.effect.replaceAll("_", " "))),
        isPending ? h("span", { class: "muted" }, left > 0 ? `expires in ${duration(left)}` : "expires now") : badge(approval.state),
      ),
      approval.reason ? h("p", { class: "why" }, approval.reason) : null,
      inTurn
        ? null
        : h(
            "p",
            { class: "muted" },
            "in ",
            h("a", { href: link(["turns", approval.turn_id], { call: approval.call_id }) }, `turn ${approval.turn_id}`),
            " of ",
            h("a", { href: link(["sessions", approval.session_id]) }, approval.session_id),
            ", asked ",
            ago(approval.created_at),
          ),
      draft.mode === "edit" ? editor(approval, draft) : shown(approval, update),
      draft.mode === "deny" ? reasonField(approval, draft) : null,
      isPending ? buttons(approval, draft) : decision(approval),
      said(draft.doing.outcome),
    );
  };

  /** @param {any} approval @param {any} draft */
  function buttons(approval, draft) {
    const { outcome } = draft.doing;
    const back = actionButton("Back", outcome, () => (Object.assign(draft, { mode: "", wrong: "" }), update()), "quiet");
    if (draft.mode === "deny") {
      return h("div", { class: "buttons", key: "deny" }, actionButton("Deny the call", outcome, () => send(approval, draft, "deny", { reason: draft.reason }), "bad"), back);
    }
    if (draft.mode === "edit") {
      return h("div", { class: "buttons", key: "edit" }, actionButton("Approve as edited", outcome, () => sendEdited(approval, draft), "primary", { disabled: outcome.busy || Boolean(draft.wrong) }), back);
    }
    return h(
      "div",
      { class: "buttons", key: "decide" },
      actionButton("Approve", outcome, () => send(approval, draft, "approve", { args_hash: approval.args_hash }), "primary"),
      actionButton("Deny…", outcome, () => ((draft.mode = "deny"), update())),
      approval.arguments ? actionButton("Edit arguments…", outcome, () => ((draft.mode = "edit"), update())) : null,
    );
  }

  /** @param {any} approval @param {any} draft @param {string} verb @param {object} body */
  async function send(approval, draft, verb, body) {
    await draft.doing.run(async () => {
      await ask("POST", `v1/approvals/${enc(approval.id)}/${verb}`, { body });
      draft.mode = "";
      return verb === "deny" ? "Denied; the model is told." : "Approved.";
    });
    decided();
  }

  /** @param {any} approval @param {any} draft */
  async function sendEdited(approval, draft) {
    const given = parsed(draft.text);
    if (given.wrong) draft.wrong = given.wrong;
    if (draft.wrong) return update();
    await send(approval, draft, "edit", { arguments: given.value, args_hash: draft.of });
  }

  /** @param {any} approval @param {any} draft */
  function editor(approval, draft) {
    const id = `edit-${approval.id}`;
    const { problem } = draft.doing.outcome;
    const wrong = draft.wrong || (problem?.status === 422 ? problem.message : "");
    const given = parsed(draft.text);
    return h(
      "div",
      { class: "editor", key: "editor" },
      h("label", { for: id }, "Arguments, as a JSON object"),
      h("textarea", {
        id,
        class: "code",
        rows: String(Math.min(24, Math.max(5, draft.text.split("\n").length + 1))),
        initial: draft.text,
        spellcheck: "false",
        "aria-invalid": String(Boolean(wrong)),
        "aria-describedby": `${id}-wrong`,
        once: (/** @type {HTMLElement} */ field) => field.focus(),
        oninput: (/** @type {Event} */ event) => {
          draft.text = /** @type {HTMLTextAreaElement} */ (event.target).value;
          draft.wrong = parsed(draft.text).wrong;
          draft.doing.outcome.problem = null;
          update();
        },
      }),
      h("p", { class: "wrong", id: `${id}-wrong`, role: "status" }, wrong),
      given.wrong ? null : valueDiff(approval.arguments, given.value, "What you changed"),
    );
  }

  /** @param {any} approval @param {any} draft */
  function reasonField(approval, draft) {
    const id = `deny-${approval.id}`;
    return h(
      "div",
      { class: "editor", key: "reason" },
      h("label", { for: id }, "Why not? The model reads it."),
      h("input", {
        id,
        initial: draft.reason,
        maxlength: "2000",
        once: (/** @type {HTMLElement} */ field) => field.focus(),
        oninput: (/** @type {Event} */ event) => (draft.reason = /** @type {HTMLInputElement} */ (event.target).value),
        onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && send(approval, draft, "deny", { reason: draft.reason }),
      }),
    );
  }
}

/** The arguments, and what they would change. @param {any} approval @param {() => void} update */
function shown(approval, update) {
  const given = approval.arguments;
  if (given === null || given === undefined) return h("p", { class: "muted", key: "none" }, "The arguments are not kept.");
  return [block(given, `Arguments of ${approval.id}`, update), changeOf(given, "What it would change")];
}

/** @param {any} approval */
function decision(approval) {
  return h(
    "p",
    { class: "muted" },
    wordOf(approval.state),
    approval.edited ? ", with other arguments" : "",
    approval.decided_by ? ` by ${approval.decided_by}` : "",
    approval.decided_at ? [" ", ago(approval.decided_at)] : "",
    approval.comment ? `: ${approval.comment}` : "",
    " · ",
    idOf(approval.id, "approval's id"),
  );
}

/** @param {string} text @returns {{value?: any, wrong: string}} */
export function parsed(text) {
  try {
    const value = JSON.parse(text);
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject ? { value, wrong: "" } : { wrong: "It has to be an object: { … }" };
  } catch (failure) {
    return { wrong: `It is no JSON: ${/** @type {Error} */ (failure).message}` };
  }
}
