/** The caller's token. It is entered once, kept for this tab only, and dropped if the gateway refuses it. */

const NAME = "brainq.token";

/** @type {Set<() => void>} */
const listeners = new Set();
let refusal = "";
let wasRefused = false;

/** @returns {Record<string, string>} */
export function authorization() {
  const token = sessionStorage.getItem(NAME);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** The reason why a token is needed, or "" if none is. */
export function wanted() {
  return refusal;
}

/** Whether a token was sent and refused because it is wrong, revoked or expired. */
export function isRefused() {
  return wasRefused;
}

export function hasToken() {
  return sessionStorage.getItem(NAME) !== null;
}

/** @param {string} token */
export function keep(token) {
  sessionStorage.setItem(NAME, token.trim());
  refusal = "";
  wasRefused = false;
  tell();
}

/** The gateway knows nobody by the token, or wants one. @param {string} why */
export function forget(why) {
  const had = hasToken();
  sessionStorage.removeItem(NAME);
  if (refusal) return;
  wasRefused = had;
  refusal = why;
  tell();
}

/** Sign out, so that this tab keeps nothing. */
export function signOut() {
  sessionStorage.removeItem(NAME);
  wasRefused = false;
  refusal = "signed out";
  tell();
}

/** Called whenever a token is wanted, or is there. @param {() => void} listener */
export function onToken(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}
