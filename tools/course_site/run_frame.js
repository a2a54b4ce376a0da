// @ts-check
// The frame with the page of a run, which knows nothing of the course around it.

/** @import { RunPage } from "./types.js" */

/** The longest time for which a part of a run is played. */
const LONGEST_MS = 8000;

export class RunFrame {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    /** @type {HTMLIFrameElement | null} */
    this.frame = null;
    /** @type {RunPage | null} */
    this.page = null;
    this.html = "";
    this.playing = 0;
    /** Settled once the run is drawn. */
    this.ready = Promise.resolve();
  }

  /**
   * Show the page of a run.
   *
   * @param {string} html
   * @param {string} [partition] shown at its start, instead of the time line of the whole run
   */
  show(html, partition) {
    this.ready = this.open(html, partition);
    return this.ready;
  }

  /**
   * Show the page of another run, unless it is shown already.
   *
   * @param {string} html
   * @param {string} partition
   */
  async swap(html, partition) {
    if (html !== this.html) await this.show(html, partition);
  }

  /**
   * @param {string} html
   * @param {string} [partition]
   */
  async open(html, partition) {
    this.clear();
    this.html = html;
    const frame = document.createElement("iframe");
    frame.title = "The page of the run";
    frame.className = "coming";
    frame.srcdoc = html;
    this.frame = frame;
    this.place.append(frame);
    const page = await pageIn(frame);
    await page.ready;
    if (partition) {
      page.showPartition(partition);
      await page.ready;
      page.look(page.began);
    }
    await drawn();
    if (this.frame !== frame) return;
    this.page = page;
    frame.className = "";
  }

  clear() {
    this.stop();
    this.frame?.remove();
    this.frame = this.page = null;
    this.html = "";
  }

  /**
   * Look at a moment; `ms`: since the start of the run.
   *
   * @param {number} ms
   */
  look(ms) {
    this.stop();
    this.page?.look(this.page.began + ms);
  }

  /**
   * Play from one moment to another, in the run's own time where that is short.
   *
   * @param {number} from
   * @param {number} until
   */
  play(from, until) {
    this.stop();
    const { page } = this;
    if (!page) return;
    const takes_ms = matchMedia("(prefers-reduced-motion: reduce)").matches
      ? 0
      : Math.min(until - from, LONGEST_MS);
    const began = performance.now();
    const step = () => {
      const part = takes_ms ? Math.min((performance.now() - began) / takes_ms, 1) : 1;
      page.look(page.began + from + (until - from) * part);
      if (part < 1) this.playing = requestAnimationFrame(step);
    };
    step();
  }

  stop() {
    cancelAnimationFrame(this.playing);
  }

  /**
   * Save the page as a file, which opens without the course.
   *
   * @param {string} name
   */
  save(name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.html], { type: "text/html" }));
    link.download = `${name}.html`;
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

/** Settled after the next frame, which draws what has changed. */
const drawn = () =>
  new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

/**
 * The page in a frame: its script unpacks it.
 *
 * @param {HTMLIFrameElement} frame
 * @returns {Promise<RunPage>}
 */
const pageIn = (frame) =>
  new Promise((resolve) => {
    const look = () => {
      const page = /** @type {any} */ (frame.contentWindow)?.kclusterPage;
      if (page) resolve(page);
      else setTimeout(look, 10);
    };
    look();
  });
