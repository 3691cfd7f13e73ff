/** Times and durations in words. Times are ms of the gateway's clock; `clock` has the offset of this machine's. */

import { h } from "./dom.js";

let ahead = 0;

/** The gateway's clock said this just now. @param {number} ms */
export function clockSays(ms) {
  ahead = Date.now() - ms;
}

/** The current time by the gateway's clock, as far as it is known. */
export function now() {
  return Date.now() - ahead;
}

/** `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 days`. @param {number} ms */
export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 0.001) return "0 s";
  if (s < 1) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return Math.round(s % 60) && min < 10 ? `${min} min ${Math.floor(s % 60)} s` : `${min} min`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return min % 60 && hours < 10 ? `${hours} h ${min % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} days`;
}

/** `just now`, `40 s ago`, `in 5 min`. @param {number} at */
export function relative(at) {
  const ms = now() - at;
  if (Math.abs(ms) < 5_000) return "just now";
  const size = coarse(Math.abs(ms));
  return ms > 0 ? `${size} ago` : `in ${size}`;
}

/** @param {number} ms */
function coarse(ms) {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.round(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

/** @param {string | number} instant ISO text, or ms */
export function ms(instant) {
  return typeof instant === "number" ? instant : Date.parse(instant);
}

/** The exact instant, in the reader's own zone. @param {number} at */
export function exact(at) {
  return new Date(at).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "medium",
  });
}

/** An instant as words, with the exact one as its title. @param {string | number | null | undefined} instant */
export function ago(instant) {
  if (!instant) return null;
  const at = ms(instant);
  return h("time", { datetime: new Date(at).toISOString(), title: exact(at) }, relative(at));
}
