/** Whether the gateway and the services behind it answer. All views report to this module. */

/** @type {{why: string, since: number} | null} */
let trouble = null;
/** @type {Set<() => void>} */
const listeners = new Set();
/** Requests that have no answer yet, by when they were sent. @type {Set<{at: number}>} */
const open = new Set();

const SLOW_MS = 5_000; // from here on a gateway that says nothing is told of

/** A request was sent. @returns {() => void} called once it is over, however */
export function sent() {
  const one = { at: Date.now() };
  open.add(one);
  return () => open.delete(one);
}

/** Record that the gateway answered. */
export function heard() {
  if (!trouble) return;
  trouble = null;
  tell();
}

/** It did not, or could not do its work. @param {{status: number, message: string}} problem */
export function lost(problem) {
  const why = problem.status === 0 ? "The gateway does not answer" : sentence(problem.message);
  if (trouble?.why === why) return;
  trouble = { why, since: trouble?.since ?? Date.now() };
  tell();
}

/** @returns {{why: string, since: number} | null} */
export function connectionTrouble() {
  if (trouble) return trouble;
  const oldest = Math.min(...[...open].map((one) => one.at));
  return Date.now() - oldest > SLOW_MS ? { why: "The gateway is slow to answer", since: oldest } : null;
}

/** @param {() => void} listener */
export function onConnection(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

/** @param {string} words */
function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
