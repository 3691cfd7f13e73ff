/** The page: the frame around the views, and the choice of the view by the address. */

import { go, link, placeOf } from "./core/address.js";
import { connectionTrouble, onConnection } from "./core/connection.js";
import { h, patch } from "./core/dom.js";
import { source } from "./core/source.js";
import { ask } from "./core/api.js";
import { hasToken, onToken, signOut, wanted } from "./core/token.js";
import { duration } from "./core/when.js";
import { keyHelp, keysButton, listenForKeys } from "./parts/keys.js";
import { newSessionId, ownPrefix, sessionsAre } from "./parts/new_chat.js";
import { tokenForm } from "./parts/token_form.js";
import { themeButton } from "./parts/theme.js";
import { approvalsView } from "./views/approvals.js";
import { fleetView } from "./views/fleet.js";
import { nowhereView } from "./views/nowhere.js";
import { sessionView } from "./views/session.js";
import { sessionsView } from "./views/sessions.js";
import { turnView } from "./views/turn.js";
import { turnsView } from "./views/turns.js";

/**
 * A view draws its data; `go` changes its query, and `stop` ends its requests.
 *
 * @typedef {import("./core/address.js").Place} Place
 * @typedef {{title: () => string, render: () => import("./core/dom.js").Loose[], go?: (place: Place) => void, stop: () => void}} View
 * @typedef {(place: Place, update: () => void) => View} MakeView
 */

const TICK_MS = 1_000;
const NAV = [
  { name: "Turns", at: "turns" },
  { name: "Sessions", at: "sessions" },
  { name: "Approvals", at: "approvals" },
  { name: "Fleet", at: "fleet" },
];

/** @type {Record<string, {many: MakeView, one?: MakeView}>} */
const VIEWS = {
  turns: { many: turnsView, one: turnView },
  sessions: { many: sessionsView, one: sessionView },
  approvals: { many: approvalsView, one: approvalsView },
  fleet: { many: fleetView },
};

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
let shown = "";
/** @type {View | null} */
let view = null;
let drawing = false;

/** @type {import("./core/source.js").Source<any> | null} */
let pending = null;
/** @type {import("./core/source.js").Source<any> | null} what the caller may do */
let caller = null;

/** Draw once before the next frame, however often this is called. */
function update() {
  if (drawing) return;
  drawing = true;
  // A hidden tab has no frames, so it is drawn when it becomes visible.
  requestAnimationFrame(draw);
}

function draw() {
  drawing = false;
  const waiting = pending?.value?.approvals?.length ?? 0;
  const title = view?.title() ?? "brainq";
  document.title = `${waiting ? `(${waiting}) ` : ""}${title} · brainq`;
  patch(root, [
    sidebar(waiting),
    h("div", { class: "page", key: "page" }, banner(), h("main", { id: "main", tabindex: "-1", key: shown }, content())),
    ...[keyHelp(update)].filter((one) => one !== null),
  ]);
}

function content() {
  if (wanted()) return tokenForm(wanted());
  return view ? view.render() : [];
}

/** The fleet belongs to no session, so only callers with all sessions see the link. */
function sees(/** @type {string} */ at) {
  if (at !== "fleet") return true;
  const known = caller?.value;
  return known ? known.verbs.includes("operate") && known.sessions.includes("*") : Boolean(caller?.problem && !caller.problem.passes);
}

/** @param {number} waiting */
function sidebar(waiting) {
  const here = placeOf(location.hash).path[0] ?? "turns";
  return h(
    "header",
    { class: "side", key: "side" },
    h("a", { class: "brand", href: "#/turns" }, h("span", { class: "logo", "aria-hidden": "true" }), "brainq"),
    h(
      "nav",
      { "aria-label": "Views" },
      NAV.filter(({ at }) => sees(at)).map(({ name, at }) =>
        h(
          "a",
          { href: `#/${at}`, title: name, "aria-current": here === at ? "page" : undefined, key: at },
          h("i", { class: `icon icon-${at}`, "aria-hidden": "true" }),
          h("span", { class: "side-name" }, name),
          at === "approvals" && waiting > 0
            ? h("span", { class: "count" }, String(waiting), h("span", { class: "unseen" }, " waiting"))
            : null,
        ),
      ),
    ),
    h(
      "div",
      { class: "side-end" },
      hasToken() ? h("button", { class: "quiet side-button", type: "button", title: "Sign out", onclick: signOut, key: "out" }, h("i", { class: "icon icon-out", "aria-hidden": "true" }), h("span", { class: "side-name" }, "Sign out")) : null,
      keysButton(update),
      themeButton(update),
    ),
  );
}

/** A line about what does not answer, for all views. Its place is reserved, so nothing below it moves. */
function banner() {
  const trouble = connectionTrouble();
  return h(
    "div",
    { class: "trouble", role: "status", key: "trouble", "data-shown": trouble ? "yes" : "no" },
    trouble ? `${trouble.why}. Retrying for ${duration(Date.now() - trouble.since)}; the page shows the last known state.` : "",
  );
}

/** Show the view of the address. */
function arrive() {
  const place = placeOf(location.hash);
  const [kind = "turns", id] = place.path;
  const at = `${kind}/${id ?? ""}`;
  if (at === shown && view?.go) view.go(place);
  else {
    const isFirst = shown === "";
    view?.stop();
    shown = at;
    const found = VIEWS[kind];
    const make = id ? found?.one : found?.many;
    view = (make ?? nowhereView)(place, update);
    scrollTo(0, 0);
    if (!isFirst) requestAnimationFrame(() => document.getElementById("main")?.focus({ preventScroll: true }));
  }
  update();
}

/** The token has changed, so everything is read again. */
function restart() {
  pending?.stop();
  caller?.stop();
  pending = null;
  caller = null;
  if (!wanted()) {
    pending = source(() => ask("GET", "v1/approvals?state=pending&limit=100"), update, { every: 4_000 });
    caller = source(async (signal) => {
      const found = await ask("GET", "v1/caller", { signal });
      sessionsAre(found.sessions);
      return found;
    }, update);
    shown = "";
    arrive();
  } else {
    view?.stop();
    view = null;
    update();
  }
}

document.querySelector("[data-skip]")?.addEventListener("click", (event) => {
  event.preventDefault(); // the address names a view, never an element
  document.getElementById("main")?.focus();
});
addEventListener("hashchange", arrive);
onConnection(update);
onToken(restart);
listenForKeys(update, () => go(link(["sessions", newSessionId(ownPrefix())])));
setInterval(() => !document.hidden && update(), TICK_MS);
restart();
