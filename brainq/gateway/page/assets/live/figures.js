/** A turn's use of its time. Pure functions of its events, its routes' answers and the time. */

/**
 * How long the turn was parked. Its events give the exact time. Without them its result or snapshot does, whose sum
 * includes the current wait.
 *
 * @param {import("./fold.js").Turn} events
 * @param {{parked_ms?: number} | null | undefined} known its result, else its snapshot
 * @param {number} now
 */
export function parkedFor(events, known, now) {
  if (!events.seq || (known?.parked_ms !== undefined && events.endedAt)) return known?.parked_ms ?? 0;
  return events.parks.reduce((sum, park) => sum + (park.to ?? now) - park.from, 0);
}

/** What a turn has cost so far; null where its model has no price. @param {any} result @param {any} budget of its snapshot */
export function costOf(result, budget) {
  if (result) return result.cost_usd;
  return budget?.cost_known === false && budget.tokens_used ? null : (budget?.cost_usd ?? 0);
}

/** What model calls have cost; null where none of them has a price. @param {{calls: number, unpriced_calls: number, cost_usd: number}[]} lines */
export function costOfCalls(lines) {
  const isPriced = lines.some((line) => line.unpriced_calls < line.calls);
  return lines.length && !isPriced ? null : lines.reduce((sum, line) => sum + line.cost_usd, 0);
}

/** What is left of its time limit, and whether it is counted down now. @param {import("./fold.js").Turn} events @param {number} now */
export function timeLeft(events, now) {
  if (!events.deadlineAt) return null;
  const park = events.parks.find((one) => one.to === null);
  return { ms: Math.max(0, events.deadlineAt - (park ? park.from : now)), isPaused: Boolean(park) };
}
