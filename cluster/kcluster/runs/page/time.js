// @ts-check
// The moment that is shown: now, or one of the past.
//
// Looking back changes nothing in the cluster.  Pause, step and speed of a live cluster are its
// own clock's; of a complete record, and of the past, they are the page's.
//
// The rows of a running cluster come ten times a second.  So that time passes evenly on the page,
// "now" is a little behind the newest rows, some tenths of a second of the viewer's time.

import { lastAt } from "./model.js";

/** @import { Model } from "./model.js" */
/** @import { Note } from "./types.js" */

/** How far "now" is behind the cluster; in slow motion, as far as an answer of the server may take. */
const LAG_MS = 250;
const SLOW_LAG_MS = 600;
/** How long time goes on without news of the cluster: its clock is sent every second. */
const SILENCE_MS = 1_500;

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
    /** The present of a running cluster, as it is shown. */
    this.present = 0;
    /** The newest time of the cluster that is known, and the viewer's time then. */
    this.heard = { at: 0, wall: 0 };
  }

  get at() {
    if (this.past !== null) return this.past;
    return this.isComplete ? this.model.until : Math.min(this.present, this.model.until);
  }
  get began() {
    return this.model.began ?? 0;
  }
  get isLive() {
    return this.past === null && !this.isComplete;
  }
  /** Whether the moment shown changes from frame to frame. */
  get isRunning() {
    return this.isLive ? this.present < this.model.until || !this.clock.paused : this.playing;
  }
  /** How much of the cluster's time passes in the viewer's time. */
  get pace() {
    return this.isLive ? this.clock.speed : this.speed;
  }

  /**
   * Take note of a time that the cluster has reached.
   *
   * @param {number} at
   * @param {number} wall the viewer's time
   */
  hear(at, wall) {
    if (at > this.heard.at) this.heard = { at, wall };
  }

  /**
   * Let the present pass.
   *
   * @param {number} wall the viewer's time
   */
  pass(wall) {
    const { heard, clock, model } = this;
    const since = Math.min(wall - heard.wall, SILENCE_MS);
    const known = clock.paused
      ? model.until
      : heard.at + (since - (clock.speed > 0.1 ? LAG_MS : SLOW_LAG_MS)) * clock.speed;
    this.present = Math.max(this.present, Math.floor(known * 100) / 100, this.began);
    if (this.isComplete) return;
    // A quiet cluster sends no rows; its clock goes on.
    model.until = Math.max(model.until, this.present);
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
