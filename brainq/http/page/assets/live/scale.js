/**
 * From instants to places on a timeline. Long waits for people take hours where the rest takes seconds: they are drawn
 * shorter, and marked as such.
 *
 * @typedef {{from: number, to: number, x0: number, x1: number, real: number}} Break in ms; x from 0 to 1
 * @typedef {{x: (at: number) => number, breaks: Break[], ticks: {at: number, x: number}[], from: number, to: number}} Scale
 */

const SHORTENED_MS = 15_000; // a wait is drawn shorter from here on
const SHARE = 0.35; // of the time that is no wait

/**
 * @param {number} from
 * @param {number} to
 * @param {{from: number, to: number}[]} waits while nothing else moved; in order, without overlap
 * @param {number} ticks about how many
 * @returns {Scale}
 */
export function scaleOf(from, to, waits, ticks) {
  const long = waits
    .map((wait) => ({ from: Math.max(from, wait.from), to: Math.min(to, wait.to) }))
    .filter((wait) => wait.to - wait.from > SHORTENED_MS);
  const waited = long.reduce((sum, wait) => sum + wait.to - wait.from, 0);
  const busy = Math.max(1, to - from - waited);
  const drawn = Math.max(SHORTENED_MS / 3, busy * SHARE);
  const isShortened = long.length > 0 && long.some((wait) => wait.to - wait.from > drawn);
  const parts = isShortened ? long : [];
  const width = parts.reduce((sum, wait) => sum + Math.min(drawn, wait.to - wait.from) - (wait.to - wait.from), to - from) || 1;

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
  const step = nice(width / ticks);
  const marks = [];
  for (let at = 0; at <= to - from && marks.length < 200; at += step) {
    const found = x(from + at);
    if (breaks.some((gap) => found > gap.x0 && found < gap.x1)) continue;
    if (marks.length && found - (marks.at(-1)?.x ?? 0) < 0.5 / ticks) continue;
    marks.push({ at, x: found });
  }
  return { x, breaks, ticks: marks, from, to };
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
