/** The words for how things stand, and the tone each is shown in. One word for one thing, as in brainq's pages. */

/** @type {Record<string, {word: string, tone: string}>} */
const STATES = {
  accepted: { word: "accepted", tone: "wait" },
  queued: { word: "queued", tone: "wait" },
  active: { word: "active", tone: "run" },
  parked: { word: "parked", tone: "park" },
  closing: { word: "closing", tone: "run" },
  completed: { word: "completed", tone: "good" },
  timed_out: { word: "timed out", tone: "bad" },
  timed_out_late: { word: "timed out, ended late", tone: "bad" },
  cancelled: { word: "cancelled", tone: "off" },
  failed: { word: "failed", tone: "bad" },
  rejected: { word: "rejected", tone: "bad" },
  planned: { word: "planned", tone: "wait" },
  waiting: { word: "waits for its lane", tone: "wait" },
  dispatched: { word: "in its queue", tone: "wait" },
  running: { word: "running", tone: "run" },
  denied: { word: "denied", tone: "off" },
  unknown: { word: "unknown", tone: "bad" },
  pending: { word: "pending", tone: "park" },
  approved: { word: "approved", tone: "good" },
  expired: { word: "expired", tone: "off" },
  void: { word: "void", tone: "off" },
  consumed: { word: "read", tone: "good" },
  bounced: { word: "became a turn", tone: "park" },
  refused: { word: "refused", tone: "bad" },
  done: { word: "done", tone: "good" },
  dead: { word: "given up", tone: "bad" },
  skipped: { word: "skipped", tone: "off" },
};

export const ENDINGS = ["completed", "timed_out", "cancelled", "failed"];

/** @type {Record<string, string>} */
export const PARKED_FOR = {
  approval: "waits for an approval",
  hold: "waits for a hold to be released",
  outside: "waits for a result from outside",
  child: "waits for its child turn",
  client: "waits for the client to run it",
};

/** @type {Record<string, string>} */
export const QUEUED_FOR = {
  session: "waits for its session",
  room: "waits for room in the fleet",
  brain: "waits for room for its brain",
  paused: "waits: its session is paused",
};

/** @param {string} state */
export function wordOf(state) {
  return STATES[state]?.word ?? state.replaceAll("_", " ");
}

/** @param {string} state */
export function toneOf(state) {
  return STATES[state]?.tone ?? "off";
}

/** @param {string} state */
export function isOver(state) {
  return ENDINGS.includes(state) || state === "rejected";
}

/** `1 step`, `2 steps`. @param {number} count @param {string} noun @param {string} [plural] */
export function counted(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

/** `$0.0120`: four digits at least below a dollar, two of them that count. @param {number | null | undefined} cost */
export function dollars(cost) {
  if (cost === null || cost === undefined) return "no price";
  if (cost <= 0) return "$0";
  if (cost < 1e-7) return "under $0.0000001";
  if (cost >= 1) return `$${cost.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  let places = 4;
  while (cost * 10 ** places < 10) places += 1;
  return `$${cost.toFixed(places)}`;
}

/** `12.3 kB`. @param {number} size in bytes */
export function bytes(size) {
  if (size >= 1_000_000) return `${(size / 1_000_000).toFixed(1)} MB`;
  return size >= 1_000 ? `${(size / 1_000).toFixed(1)} kB` : counted(size, "byte");
}

/** The first line of a text, as a title. @param {string} text @param {number} [most] */
export function firstLine(text, most = 200) {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  return line.length > most ? `${line.slice(0, most)}…` : line;
}
