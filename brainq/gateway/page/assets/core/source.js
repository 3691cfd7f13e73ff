/**
 * Data that is read repeatedly. The newest answer is kept while the next one is on its way or nobody answers. Nothing is
 * read while the tab is hidden.
 *
 * @template T
 * @typedef {{
 *   value: T | undefined,
 *   problem: import("./api.js").Problem | null,
 *   refresh: () => void,
 *   stop: () => void,
 * }} Source
 */

import { Problem } from "./api.js";

const LONGEST_MS = 8_000;

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {() => void} changed called when there is a value, or a problem
 * @param {{least?: number, every?: number}} [pace] at most once in `least` ms; by itself after `every` ms
 * @returns {Source<T>}
 */
export function source(load, changed, { least = 400, every = 0 } = {}) {
  const gone = new AbortController();
  let asking = false;
  let again = false;
  let failures = 0;
  let at = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @type {Source<T>} */
  const self = { value: undefined, problem: null, refresh, stop };

  function refresh() {
    if (gone.signal.aborted) return;
    if (asking) again = true;
    else plan(Math.max(0, at + least - performance.now()));
  }

  /** @param {number} wait */
  function plan(wait) {
    clearTimeout(timer);
    timer = setTimeout(run, wait);
  }

  async function run() {
    if (document.hidden && self.value !== undefined) return; // `shown` asks again
    asking = true;
    again = false;
    at = performance.now();
    try {
      self.value = await load(gone.signal);
      self.problem = null;
      failures = 0;
    } catch (failure) {
      if (gone.signal.aborted) return;
      if (!(failure instanceof Problem)) throw failure;
      self.problem = failure;
      failures += 1;
    } finally {
      asking = false;
    }
    if (gone.signal.aborted) return;
    changed();
    if (self.problem?.passes) plan(Math.min(LONGEST_MS, 500 * 2 ** failures));
    else if (again) refresh();
    else if (every && !self.problem) plan(every);
  }

  function shown() {
    if (!document.hidden) refresh();
  }

  function stop() {
    gone.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
  }

  document.addEventListener("visibilitychange", shown);
  plan(0);
  return self;
}
