// @ts-check
// What the page asks of its cluster: the stream of rows, actions, the clock, forks, clients.
//
// All of it goes to the server that served this page, with the token of the page's address.

import { rowsOf } from "./carried.js";

/** @import { Controls } from "./controls.js" */
/** @import { Address, ProblemDetail } from "./types.js" */

const RETRY_MS = 1000;

/**
 * The cluster's address, or null for a page that carries its record.
 *
 * @param {Location} location
 * @returns {Address | null}
 */
export function addressOf(location) {
  const found = /\/page\/([^/?#]+)/.exec(location.pathname);
  const token = new URLSearchParams(location.search).get("token");
  return found
    ? { base: `/v1/clusters/${found[1]}`, id: decodeURIComponent(found[1]), token }
    : null;
}

/** An answer that refuses, RFC 9457: its words are shown as they are. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {ProblemDetail} problem
   */
  constructor(status, problem) {
    const hints = (problem.errors ?? problem.problems ?? []).map(
      (each) => each.message ?? each.detail ?? "",
    );
    super(
      [problem.detail ?? problem.title ?? `HTTP ${status}`, ...hints].filter(Boolean).join(". "),
    );
    this.status = status;
  }
}

export class Connection {
  /**
   * @param {Address} address
   * @param {Controls} events
   */
  constructor(address, events) {
    this.address = address;
    this.events = events;
    this.until = -1;
  }

  /** Open the stream, again after each failure, from where it ended. */
  open() {
    const { base, token } = this.address;
    const query = new URLSearchParams({
      after_ms: String(this.until),
      columns: "true",
      token: token ?? "",
    });
    const source = new EventSource(`${base}/stream?${query}`);
    source.addEventListener("rows", (event) => {
      const { rows, until_ms: until } = JSON.parse(event.data);
      this.until = Math.max(this.until, until);
      this.events.rows(rowsOf(rows), until);
    });
    source.addEventListener("clock", (event) => this.events.clock(JSON.parse(event.data)));
    source.addEventListener("verdict", (event) => this.events.setVerdict(JSON.parse(event.data)));
    source.addEventListener("lesson", (event) => this.events.setLesson(JSON.parse(event.data)));
    source.onopen = () => this.events.state("live");
    source.onerror = () => {
      source.close();
      this.events.state("lost");
      setTimeout(() => this.open(), RETRY_MS);
    };
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} body
   * @returns {Promise<any>}
   */
  async ask(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${this.address.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(`${this.address.base}${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new Refusal(0, { detail: "The cluster does not answer" });
    }
    const text = await answer.text();
    let value = null;
    try {
      value = text ? JSON.parse(text) : null;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    if (!answer.ok) throw new Refusal(answer.status, value ?? {});
    return value;
  }
}
