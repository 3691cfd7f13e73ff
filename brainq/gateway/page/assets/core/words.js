/** The words for states, and the tone of each. They are the words of brainq's documentation. */

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
  waiting: { word: "waiting for its lane", tone: "wait" },
  dispatched: { word: "queued", tone: "wait" },
  running: { word: "running", tone: "run" },
  denied: { word: "denied", tone: "off" },
  unknown: { word: "outcome unknown", tone: "bad" },
  pending: { word: "pending", tone: "park" },
  approved: { word: "approved", tone: "good" },
  expired: { word: "expired", tone: "off" },
  void: { word: "no longer needed", tone: "off" },
  consumed: { word: "read", tone: "good" },
  bounced: { word: "became a turn", tone: "park" },
  refused: { word: "refused", tone: "bad" },
  done: { word: "done", tone: "good" },
  dead: { word: "given up", tone: "bad" },
  skipped: { word: "skipped", tone: "off" },
};

export const ENDINGS = ["completed", "timed_out", "cancelled", "failed"];

/**
 * A turn's ending by its stop reason: a word for a badge, a tone, and a sentence. Only `answered` is good.
 *
 * @type {Record<string, {word: string, tone: string, sentence: string}>}
 */
const STOPS = {
  answered: { word: "completed", tone: "good", sentence: "The model answered." },
  empty_reply: { word: "no answer", tone: "park", sentence: "The model's reply was empty." },
  length: { word: "answer cut off", tone: "park", sentence: "The answer was cut off at the model's length limit." },
  filtered: { word: "filtered", tone: "bad", sentence: "A content filter stopped the answer, or the model refused." },
  invalid_output: { word: "invalid answer", tone: "bad", sentence: "The answer does not match the output schema." },
  max_steps: { word: "step limit", tone: "park", sentence: "It used all of its steps before it had an answer." },
  max_total_tokens: { word: "token limit", tone: "park", sentence: "It used all of its tokens before it had an answer." },
  max_cost: { word: "cost limit", tone: "park", sentence: "It reached its cost limit before it had an answer." },
  deadline: { word: "timed out", tone: "bad", sentence: "It reached its time limit before it had an answer." },
  waited: { word: "waited too long", tone: "bad", sentence: "It waited too long to begin, so nothing was done." },
  limited: { word: "rate limited", tone: "bad", sentence: "The model's rate limit left no capacity for it within a day." },
  cancelled: { word: "cancelled", tone: "off", sentence: "It was cancelled." },
  model_error: { word: "model error", tone: "bad", sentence: "The model's service failed." },
  lost: { word: "lost", tone: "bad", sentence: "Its state was lost after it had begun to write." },
  internal_error: { word: "internal error", tone: "bad", sentence: "An internal error ended it." },
};

/** @param {string} state @param {string | null | undefined} stopReason */
export function endingOf(state, stopReason) {
  const stop = stopReason ? STOPS[stopReason] : undefined;
  if (!stop || !ENDINGS.includes(state)) return { word: wordOf(state), tone: toneOf(state), sentence: "" };
  // A turn that failed is never shown as a success, whatever its reason is.
  return state === "completed" || stop.tone === toneOf(state) ? stop : { ...stop, tone: toneOf(state) };
}

/**
 * A model service's refusal in words, by its status: `OpenAI rejected the key (401).`
 *
 * @param {string | null | undefined} error as the result has it
 */
export function modelError(error) {
  const found = /(\w[\w.-]*): HTTP (4\d\d|5\d\d)\b/.exec(error ?? "");
  if (!found) return "";
  const service = SERVICES[(found[1] ?? "").toLowerCase()] ?? found[1] ?? "The model's service";
  const status = found[2] ?? "";
  const what = { 401: "rejected the key", 403: "refused access", 404: "does not know this model or address", 413: "found the request too large", 429: "is rate limiting" }[status] ?? "failed";
  return `${service} ${what} (${status}).`;
}

/** @type {Record<string, string>} */
const SERVICES = { openai: "OpenAI", anthropic: "Anthropic", google: "Google", mistral: "Mistral" };

/** @type {Record<string, string>} */
export const PARKED_FOR = {
  approval: "waiting for approval",
  hold: "on hold",
  outside: "waiting for an outside result",
  child: "waiting for its child turn",
  client: "waiting for the client",
};

/** @type {Record<string, string>} */
export const QUEUED_FOR = {
  session: "waiting for earlier turns of its session",
  room: "waiting for capacity",
  brain: "waiting for its brain's capacity",
  paused: "waiting: its session is paused",
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
