// @ts-check
// Python in a worker beside the page: starts it from the files in the page, and calls its functions.

/** @import { FromWorker } from "./types.js" */

/**
 * @typedef {{
 *   resolve: (answer: any) => void,
 *   reject: (error: Error) => void,
 *   report?: (done: number, of: number) => void,
 * }} Call
 */

export const PLAYS = "Python plays the run.";

export class Python {
  /** @param {(stage: string) => void} report called with the stage of its start */
  constructor(report) {
    this.report = report;
    /** @type {Map<number, Call>} */
    this.calls = new Map();
    this.number = 0;
    this.isReady = false;
    this.begin();
  }

  /** Start the worker; a call that is not answered fails. */
  begin() {
    for (const { reject } of this.calls.values()) reject(new Error("Stopped."));
    this.calls.clear();
    this.worker?.terminate();
    this.isReady = false;
    const code = new Blob([textOf("worker")], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(code));
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = ({ message }) => this.report(`Python could not start: ${message}`);
    this.report("Python starts in this browser.");
    const packed = document.querySelectorAll("script[data-file]");
    const files = [...packed].map((each) => [each.getAttribute("data-file"), each.textContent]);
    this.worker.postMessage({ files: Object.fromEntries(files) });
  }

  /**
   * The answer of a function of learn/in_browser.py.
   *
   * @param {string} call
   * @param {unknown[]} values
   * @param {(done: number, of: number) => void} [report] called while the function works
   * @returns {Promise<any>}
   */
  ask(call, values, report) {
    this.number += 1;
    const { number } = this;
    return new Promise((resolve, reject) => {
      this.calls.set(number, { resolve, reject, report });
      this.worker?.postMessage({ number, call, values, reports: report !== undefined });
    });
  }

  /** @param {FromWorker} message */
  hear(message) {
    if (message.stage) this.report(message.stage);
    if (message.ready) this.isReady = true;
    if (message.ready) this.report(this.calls.size ? PLAYS : "Python is ready.");
    const { number = 0 } = message;
    const call = this.calls.get(number);
    if (message.of) {
      call?.report?.(message.done ?? 0, message.of);
      return;
    }
    this.calls.delete(number);
    if (message.error) {
      if (call) call.reject(new Error(message.error));
      else this.report(`Python could not start: ${message.error}`);
    } else if (message.answer)
      call?.resolve({ ...JSON.parse(message.answer), took_ms: message.took_ms });
  }
}

/** @param {string} id */
const textOf = (id) => document.getElementById(id)?.textContent ?? "";
