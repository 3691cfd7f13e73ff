/** The brains of the deployment. They are read once, because they change only when the gateway restarts. */

import { Problem, ask } from "../core/api.js";

/** @typedef {{name: string, model: string, is_default: boolean, tools?: {name: string, description: string}[]}} BrainSeen */

/** @type {BrainSeen[]} */
let known = [];
/** @type {Promise<void> | null} */
let asking = null;

/** Those that are known by now. @returns {BrainSeen[]} */
export function knownBrains() {
  return known;
}

/** What a tool does, in the words of its brain; empty where that is not known. @param {string} tool @param {string | null | undefined} brain */
export function descriptionOf(tool, brain) {
  const found = known.find((one) => (brain ? one.name === brain : one.is_default));
  return found?.tools?.find((one) => one.name === tool)?.description ?? "";
}

/** Ask for them, if nobody has yet. @param {() => void} changed */
export function askForBrains(changed) {
  asking ??= ask("GET", "v1/brains").then(
    (told) => {
      known = told.brains;
    },
    (failure) => {
      asking = null; // whoever is next asks again
      if (!(failure instanceof Problem)) throw failure;
    },
  );
  asking.then(changed);
}
