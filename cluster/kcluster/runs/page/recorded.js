// @ts-check
// The page of a finished run, which carries its rows: the timeline, and what it unpacks later.

import { insert, rowsOf, unpacked } from "./carried.js";
import { momentInAddress, Page, start } from "./page.js";
import { Facts } from "./timeline/facts.js";
import "./views/timeline.js";

/** @import { Carried, Tables } from "./types.js" */

class RunPage extends Page {
  constructor() {
    super(true, true);
    this.isLoading = true;
    /**
     * Settled once it has what the views of a moment need; null before one was opened.
     *
     * @type {Promise<void> | null}
     */
    this.moments = null;
    /** Settled once the page shows its run. */
    this.ready = this.load();
  }

  /** Show the run that the page carries. */
  async load() {
    /** @type {Carried} */
    const carried = await unpacked("carried");
    Object.assign(this.model, { began: carried.run.began, isWhole: true });
    this.rows(rowsOf(carried.tables), carried.run.end);
    this.time.look(momentInAddress(this.model) ?? carried.run.began);
    this.verdict = carried.verdict;
    this.facts = new Facts(this.model, carried);
    this.lessons = carried.lessons;
    if (this.lessons.length && !location.hash.includes("view=")) this.view = "partition";
    await this.complete();
  }

  /** Draw the view, once it has what it needs. */
  async complete() {
    if (!this.facts) return;
    const { view } = this;
    if (!this.tabs.find(({ key }) => key === view)?.isOfRun) {
      this.isLoading = true;
      this.moments ??= this.loadMoments();
      await this.moments;
    }
    this.isLoading = false;
    this.redraw();
  }

  /** Add the rows of views of a moment, their style and their code. */
  async loadMoments() {
    /** @type {Tables} */
    const tables = await unpacked("later");
    this.rows(rowsOf(tables), this.model.until);
    await insert("style", "moments_style");
    await insert("script", "moments");
    if (document.getElementById("secured")) await insert("script", "secured");
  }

  /** @param {string} view */
  show(view) {
    super.show(view);
    this.ready = this.complete();
  }
}

start(new RunPage());
