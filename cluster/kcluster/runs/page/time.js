// @ts-check
// The moment that is shown: now, or one of the past.
//
// Looking back changes nothing in the cluster.  Pause, step and speed of a live cluster are its
// own clock's; of a complete record, and of the past, they are the page's.

import { lastAt } from "./model.js";

/** @import { Model } from "./model.js" */
/** @import { Note } from "./types.js" */

export class Time {
  /**
   * @param {Model} model
   * @param {boolean} isComplete
   */
  constructor(model, isComplete) {
    this.model = model;
    this.isComplete = isComplete;
    this.past = null;
    this.playing = false;
    this.speed = 1;
    this.kind = "any";
    this.clock = { paused: false, speed: 1, steppable: [] };
  }

  get at() {
    return this.past ?? this.model.until;
  }
  get began() {
    return this.model.began ?? 0;
  }
  get isLive() {
    return this.past === null && !this.isComplete;
  }

  /** @param {number} at */
  look(at) {
    const bounded = Math.min(Math.max(at, this.began), this.model.until);
    this.past = !this.isComplete && bounded >= this.model.until ? null : bounded;
    if (this.past === null) this.playing = false;
  }

  now() {
    this.past = this.isComplete ? this.model.until : null;
    this.playing = false;
  }

  /**
   * Play on by a span of the viewer's time.
   *
   * @param {number} ms
   */
  advance(ms) {
    if (!this.playing) return;
    this.look(this.at + ms * this.speed);
    if (this.at >= this.model.until) this.playing = false;
  }

  /**
   * The event after (1) or before (-1) the moment shown, of the kind chosen; null if none.
   *
   * @param {number} direction
   */
  next(direction) {
    const { notes } = this.model;
    /** @param {Note} note */
    const fits = (note) => note.isStory && (this.kind === "any" || note.kind === this.kind);
    let i = lastAt(notes, direction > 0 ? this.at : this.at - 1);
    if (direction > 0) {
      for (i += 1; i < notes.length; i++) if (fits(notes[i])) return notes[i];
    } else for (; i >= 0; i--) if (fits(notes[i])) return notes[i];
    return null;
  }
}
