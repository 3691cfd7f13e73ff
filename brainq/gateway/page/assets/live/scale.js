/**
 * The scale of a timeline. Waits for people take hours while the rest takes seconds, so long waits are shortened and
 * marked.
 *
 * @typedef {{from: number, to: number, x0: number, x1: number, real: number}} Break in ms; x from 0 to 1
 * @typedef {{at: number, x: number, label: string}} Tick
 * @typedef {{x: (at: number) => number, breaks: Break[], ticks: Tick[], from: number, to: number}} Scale
 * @typedef {{from: number, to: number}} Wait
 */

const SHORTENED_MS = 15_000; // a wait is drawn shorter from here on
const SHARE = 0.35; // of the time that is no wait
const LEAST_MS = 2_000;
const BEHIND = 60; // what ends last has this part of the width behind it: the shortest bar is wider than its time
const MOST_TICKS = 200;

/**
 * @param {number} from
 * @param {number} to
 * @param {Wait[]} waits while nothing else moved; in order, without overlap
 * @param {number} ticks about how many
 * @returns {Scale}
 */
export function scaleOf(from, to, waits, ticks) {
  const { parts, drawn, width } = shortened(from, to, waits);

  /** @param {number} at */
  function x(at) {
    let passed = Math.min(Math.max(at, from), to) - from;
    for (const wait of parts) {
      const real = wait.to - wait.from;
      const less = real - Math.min(drawn, real);
      if (at >= wait.to) passed -= less;
      else if (at > wait.from) passed -= (less * (at - wait.from)) / real;
    }
    return passed / width;
  }

  const breaks = parts.map((wait) => ({ ...wait, x0: x(wait.from), x1: x(wait.to), real: wait.to - wait.from }));
  return { x, breaks, ticks: ticksOf(from, to, nice(width / ticks), x, breaks, ticks), from, to };
}

/** Where a drawn timeline ends: a turn that runs has room to grow; one that ended, or is parked now, has none. @param {number} from @param {number} last @param {Wait[]} waits @param {boolean} isOver */
export function endOf(from, last, waits, isOver) {
  // By what is drawn: a wait of an hour that is drawn as five seconds asks for no more room than these.
  const { width } = shortened(from, last, waits);
  const isParked = waits.some((wait) => wait.to >= last);
  return last + (isOver || isParked ? width / BEHIND : roomFor(width) - width);
}

/** The waits that are drawn shorter, each how wide, and how wide the whole then is, in ms. @param {number} from @param {number} to @param {Wait[]} waits */
function shortened(from, to, waits) {
  const long = waits
    .map((wait) => ({ from: Math.max(from, wait.from), to: Math.min(to, wait.to) }))
    .filter((wait) => wait.to - wait.from > SHORTENED_MS);
  const waited = long.reduce((sum, wait) => sum + wait.to - wait.from, 0);
  const busy = Math.max(1, to - from - waited);
  const drawn = Math.max(LEAST_MS, busy * SHARE);
  const width = long.reduce((sum, wait) => sum + Math.min(drawn, wait.to - wait.from) - (wait.to - wait.from), to - from) || 1;
  return { parts: long.some((wait) => wait.to - wait.from > drawn) ? long : [], drawn, width };
}

/** @param {number} from @param {number} to @param {number} step @param {(at: number) => number} x @param {Break[]} breaks @param {number} ticks */
function ticksOf(from, to, step, x, breaks, ticks) {
  /** @type {Tick[]} */
  const marks = [];
  for (let at = 0; at <= to - from && marks.length < MOST_TICKS; at += step) {
    const gap = breaks.find((one) => from + at > one.from && from + at < one.to);
    if (gap) {
      at = Math.floor((gap.to - from) / step) * step; // the next one is behind it
      continue;
    }
    const found = x(from + at);
    if (marks.length && found - (marks.at(-1)?.x ?? 0) < 0.5 / ticks) continue;
    marks.push({ at, x: found, label: tickLabel(at, step) });
  }
  return marks;
}

/** As exact as the distance to the next: two ticks never read alike. @param {number} at @param {number} step */
export function tickLabel(at, step) {
  if (at === 0) return "0";
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const s = at / 1_000;
  if (s < 1) return `${Math.round(at)} ms`;
  const places = step < 10 ? 3 : step < 100 ? 2 : step < 1_000 ? 1 : 0;
  if (s < 60) return `${s.toFixed(places)} s`;
  const hours = Math.floor(s / 3_600);
  const min = Math.floor((s % 3_600) / 60);
  const rest = s % 60;
  const seconds = step % 60_000 ? ` ${two(Math.floor(rest))}${places ? (rest % 1).toFixed(places).slice(1) : ""} s` : "";
  return hours ? `${hours} h ${two(min)} min${seconds}` : `${min} min${seconds}`;
}

/** The span to draw of a turn that runs: it stays the same for a while, so that bars grow and nothing jumps. @param {number} ms */
export function roomFor(ms) {
  const least = Math.max(4_000, ms * 1.08);
  const unit = 10 ** Math.floor(Math.log10(least)) / 4;
  return Math.ceil(least / unit) * unit;
}

/** The next of 1, 2, 5, 10, 30, 60 ... of something that is read easily. @param {number} ms */
export function nice(ms) {
  const units = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5];
  return units.find((unit) => unit >= ms) ?? Math.ceil(ms / 864e5) * 864e5;
}
