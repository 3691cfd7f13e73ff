/** A call that needs an approval: who requested it, what it would change, and the buttons to decide. */

import { ask, enc } from "../core/api.js";
import { link } from "../core/address.js";
import { h } from "../core/dom.js";
import { ago, duration, ms, now } from "../core/when.js";
import { firstLine, wordOf } from "../core/words.js";
import { descriptionOf } from "../live/brains.js";
import { action, actionButton, said } from "./action.js";
import { argumentFields, argumentList, fieldsOf, isExact, readFields } from "./arguments.js";
import { badge, idOf } from "./bits.js";
import { changeOf } from "./change.js";
import { copyButton } from "./copy.js";
import { valueDiff } from "./diff.js";

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
    return { mode: "", isJson: false, ...asGiven(approval), reason: "", wrong: "", field: "", doing: action(update) };
  }

  /** What is edited, and of which arguments. @param {any} approval */
  function asGiven(approval) {
    return { text: JSON.stringify(approval.arguments, null, 2), fields: fieldsOf(approval.arguments ?? {}), of: approval.args_hash, given: approval.arguments };
  }

  /** @param {any} approval @param {{inTurn?: boolean, picked?: {isPicked: boolean, pick: (on: boolean) => void}}} [where] */
  return function card(approval, { inTurn = false, picked } = {}) {
    const draft = drafts.get(approval.id) ?? begun(approval);
    drafts.set(approval.id, draft);
    if (!draft.mode) Object.assign(draft, asGiven(approval));
    const isPending = approval.state === "pending";
    const left = ms(approval.expires_at) - now();
    const description = descriptionOf(approval.tool, approval.brain);
    return h(
      "article",
      { class: "card approval", key: approval.id, "data-state": approval.state, "data-effect": approval.effect, "aria-label": `Approval of ${approval.tool}` },
      h(
        "header",
        null,
        h(
          "h3",
          null,
          picked && isPending ? h("input", { type: "checkbox", class: "pick", checked: picked.isPicked, "aria-label": `Select ${approval.tool}, ${approval.id}`, onchange: (/** @type {Event} */ event) => picked.pick(/** @type {HTMLInputElement} */ (event.target).checked) }) : null,
          h("span", { class: "tool" }, approval.tool),
          h("span", { class: "effect", "data-effect": approval.effect }, approval.effect.replaceAll("_", " ")),
        ),
        isPending ? h("span", { class: "muted" }, left > 0 ? `expires in ${duration(left)}` : "expires now") : badge(approval.state),
      ),
      description ? h("p", { class: "muted described", dir: "auto" }, firstLine(description, 300)) : null,
      inTurn || !approval.message ? null : h("blockquote", { class: "asked-for", dir: "auto" }, h("span", { class: "unseen" }, "The user said: "), approval.message),
      approval.reason ? h("p", { class: "why", dir: "auto" }, h("span", { class: "muted" }, "Needs approval: "), approval.reason) : null,
      draft.mode === "edit" ? editor(approval, draft) : shown(approval),
      inTurn ? null : origin(approval),
      draft.mode === "deny" ? reasonField(approval, draft) : null,
      isPending ? buttons(approval, draft) : decision(approval),
      said(draft.doing.outcome),
    );
  };

  /** @param {any} approval @param {any} draft */
  function buttons(approval, draft) {
    const { outcome } = draft.doing;
    const yes = approval.effect === "destructive" ? "danger" : "primary";
    const back = actionButton("Back", outcome, () => (Object.assign(draft, { mode: "", wrong: "", field: "" }), update()), "quiet");
    if (draft.mode === "deny") {
      return h("div", { class: "buttons", key: "deny" }, actionButton("Deny the call", outcome, () => send(approval, draft, "deny", { reason: draft.reason }), "bad"), back);
    }
    if (draft.mode === "edit") {
      const isJson = draft.isJson;
      return h(
        "div",
        { class: "buttons", key: "edit" },
        actionButton("Approve as edited", outcome, () => sendEdited(approval, draft), yes, { disabled: outcome.busy || Boolean(draft.wrong) }),
        actionButton(isJson ? "Edit as fields" : "Edit as JSON", outcome, () => toggleJson(draft), "", { disabled: outcome.busy || Boolean(draft.wrong) }),
        back,
      );
    }
    return h(
      "div",
      { class: "buttons", key: "decide" },
      actionButton("Approve", outcome, () => send(approval, draft, "approve", { args_hash: approval.args_hash }), yes),
      actionButton("Deny…", outcome, () => ((draft.mode = "deny"), update())),
      approval.arguments && isExact(approval.arguments) ? actionButton("Edit arguments…", outcome, () => ((draft.mode = "edit"), update())) : null,
    );
  }

  /** @param {any} draft */
  function toggleJson(draft) {
    const { value = draft.given } = readDraft(draft);
    // From now on, the fields are those of the edited JSON.
    Object.assign(draft, { isJson: !draft.isJson, given: value, text: JSON.stringify(value, null, 2), fields: fieldsOf(value) });
    update();
  }

  /** @param {any} approval @param {any} draft @param {string} verb @param {object} body */
  async function send(approval, draft, verb, body) {
    await draft.doing.run(async () => {
      await ask("POST", `v1/approvals/${enc(approval.id)}/${verb}`, { body });
      draft.mode = "";
      return verb === "deny" ? "Denied. The model will see that." : "Approved.";
    });
    decided();
  }

  /** @param {any} approval @param {any} draft */
  async function sendEdited(approval, draft) {
    const read = readDraft(draft);
    Object.assign(draft, { wrong: read.wrong, field: read.field });
    if (read.wrong) return update();
    await send(approval, draft, "edit", { arguments: read.value, args_hash: draft.of });
  }

  /** @param {any} approval @param {any} draft */
  function editor(approval, draft) {
    const id = `edit-${approval.id}`;
    const { problem } = draft.doing.outcome;
    const wrong = draft.wrong || (problem?.status === 422 ? problem.message : "");
    const { value } = readDraft(draft);
    const checked = () => {
      const read = readDraft(draft);
      Object.assign(draft, { wrong: read.wrong, field: read.field });
      draft.doing.outcome.problem = null;
      update();
    };
    return h(
      "div",
      { class: "editor", key: draft.isJson ? "editor json" : "editor" },
      draft.isJson ? jsonField(id, draft, Boolean(wrong), checked) : argumentFields(id, draft.given, draft.fields, draft.field, (name, text) => ((draft.fields[name] = text), checked())),
      h("p", { class: "wrong", id: `${id}-wrong`, role: "status" }, wrong),
      value === undefined || JSON.stringify(value) === JSON.stringify(approval.arguments) ? null : valueDiff(approval.arguments, value, "Your changes"),
    );
  }

  /** @param {string} id @param {any} draft @param {boolean} isWrong @param {() => void} checked */
  function jsonField(id, draft, isWrong, checked) {
    return [
      h("label", { for: id, key: "label" }, "Arguments, as a JSON object"),
      h("textarea", {
        id,
        key: "json",
        class: "code",
        rows: String(Math.min(24, Math.max(5, draft.text.split("\n").length + 1))),
        initial: draft.text,
        spellcheck: "false",
        "aria-invalid": String(isWrong),
        "aria-describedby": `${id}-wrong`,
        once: (/** @type {HTMLElement} */ field) => field.focus(),
        oninput: (/** @type {Event} */ event) => ((draft.text = /** @type {HTMLTextAreaElement} */ (event.target).value), checked()),
      }),
    ];
  }

  /** @param {any} approval @param {any} draft */
  function reasonField(approval, draft) {
    const id = `deny-${approval.id}`;
    return h(
      "div",
      { class: "editor", key: "reason" },
      h("label", { for: id }, "Reason (the model reads it)"),
      h("input", {
        id,
        initial: draft.reason,
        maxlength: "2000",
        dir: "auto",
        once: (/** @type {HTMLElement} */ field) => field.focus(),
        oninput: (/** @type {Event} */ event) => (draft.reason = /** @type {HTMLInputElement} */ (event.target).value),
        onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && send(approval, draft, "deny", { reason: draft.reason }),
      }),
    );
  }
}

/** What is edited, as arguments. @param {any} draft @returns {{value?: any, wrong: string, field: string}} */
function readDraft(draft) {
  return draft.isJson ? { ...parsed(draft.text), field: "" } : readFields(draft.given, draft.fields);
}

/** The arguments, and what they would change. @param {any} approval */
function shown(approval) {
  const given = approval.arguments;
  if (given === null || given === undefined) return h("p", { class: "muted", key: "none" }, "The arguments are not kept.");
  const change = changeOf(given, "What it would change");
  return h("div", { class: "given-arguments", key: "given" }, argumentList(given, `Arguments of ${approval.id}`), change, copyButton(JSON.stringify(given, null, 2), "arguments as JSON", "Copy JSON"));
}

/** @param {any} approval */
function origin(approval) {
  return h(
    "p",
    { class: "muted origin" },
    h("a", { href: link(["turns", approval.turn_id], { call: approval.call_id }) }, `turn ${approval.turn_id}`),
    " in ",
    h("a", { href: link(["sessions", approval.session_id]) }, approval.session_id),
    ", asked ",
    ago(approval.created_at),
  );
}

/** @param {any} approval */
function decision(approval) {
  const word = wordOf(approval.state);
  return h(
    "p",
    { class: "muted" },
    word.charAt(0).toUpperCase() + word.slice(1),
    approval.edited ? " with other arguments" : "",
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
    return isObject ? { value, wrong: "" } : { wrong: "It must be an object: { … }" };
  } catch (failure) {
    return { wrong: `It is not valid JSON: ${/** @type {Error} */ (failure).message}` };
  }
}
