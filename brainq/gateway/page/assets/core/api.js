/**
 * The gateway's API, through which the page does everything. A refusal is a Problem (RFC 9457) with the API's text.
 */

import { heard, lost, sent as sending } from "./connection.js";
import { authorization, forget } from "./token.js";

const AWAY = "urn:brainq:page:away";
const LONGEST_MS = 30_000; // a question that has no answer by then is asked again; a change is never cut off

/** A refusal, or a request without an answer, which has the `status` 0. */
export class Problem extends Error {
  /** @param {{status: number, type?: string, title?: string, detail?: string, field?: string, state?: string}} told */
  constructor(told) {
    super(told.detail || told.title || `the gateway answered ${told.status}`);
    this.status = told.status;
    this.type = told.type ?? "";
    this.title = told.title ?? "";
    this.field = told.field ?? "";
    this.state = told.state ?? "";
  }

  /** A word for programs, such as `approval-decided`. */
  get word() {
    return this.type.split(":").pop() ?? "";
  }

  /** Whether the same request may succeed later, because nothing is wrong with it. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * @param {string} method
 * @param {string} path below the page's own address, such as `v1/turns`
 * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [given]
 * @returns {Promise<any>} the answer's JSON
 */
export async function ask(method, path, given = {}) {
  const answer = await request(method, path, given);
  return answer.status === 204 ? null : answer.json();
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [given]
 * @returns {Promise<Response>} an answer that is no refusal
 */
export async function request(method, path, { body, headers = {}, signal } = {}) {
  const sent = { ...authorization(), ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const over = sending();
  const patience = method === "GET" ? new AbortController() : null;
  const timer = patience ? setTimeout(() => patience.abort(), LONGEST_MS) : undefined;
  const stop = () => patience?.abort();
  signal?.addEventListener("abort", stop);
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: patience?.signal ?? signal,
      cache: "no-store",
    });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    const problem = new Problem({ status: 0, type: AWAY, detail: "the gateway does not answer" });
    lost(problem);
    throw problem;
  } finally {
    clearTimeout(timer); // a stream that has begun is followed for as long as it lasts
    over();
  }
  if (answer.ok) {
    heard();
    return answer;
  }
  const problem = new Problem({ ...(await told(answer)), status: answer.status });
  if (answer.status === 401) forget(problem.message);
  else if (answer.status === 503) lost(problem);
  else heard();
  throw problem;
}

/** @param {string} id */
export const enc = encodeURIComponent;

/** @param {Response} answer */
async function told(answer) {
  try {
    return await answer.json();
  } catch {
    return { title: `the gateway answered ${answer.status}` }; // something between us and it did
  }
}
