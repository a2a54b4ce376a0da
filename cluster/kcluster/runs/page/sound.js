// @ts-check
// The cluster as it sounds: a tick for each heartbeat, silence after a kill, a chord at an election.
// It is off at first.

import { lastAt } from "./model.js";

/** @import { Page } from "./page.js" */

const TICK_HZ = 1_300;
const CHORD_HZ = [392, 494, 587];
const LOSS_HZ = [110];
/** The most ticks of one frame. */
const MAX_TICKS = 6;
/** A longer step, in ms of the viewer's time, is a jump, of which nothing is heard. */
const JUMP_MS = 1_000;

export class Sound {
  constructor() {
    /** @type {AudioContext | null} */
    this.context = null;
    this.heard = 0;
  }

  get isOn() {
    return this.context !== null;
  }

  toggle() {
    if (this.context) this.context.close();
    this.context = this.context ? null : new AudioContext();
  }

  /**
   * Play the sounds of what has happened since the last frame.
   *
   * @param {Page} page
   */
  play({ at, model, time }) {
    const from = this.heard;
    this.heard = at;
    if (!this.context || at <= from || at - from > JUMP_MS * time.pace) return;
    const ticks = [...model.brokers.values()].filter(({ sessions }) => {
      const last = sessions[lastAt(sessions, at)];
      return last && last.at > from;
    });
    for (const { id } of ticks.slice(0, MAX_TICKS)) this.note(TICK_HZ + 60 * (id % 7), 0.03, 0.05);
    for (let i = lastAt(model.notes, at); i >= 0 && model.notes[i].at > from; i--) {
      const { kind } = model.notes[i];
      if (kind === "leader_elected") for (const hz of CHORD_HZ) this.note(hz, 0.9, 0.06);
      else if (kind === "broker_down") for (const hz of LOSS_HZ) this.note(hz, 0.5, 0.15);
    }
  }

  /**
   * @param {number} hz
   * @param {number} seconds
   * @param {number} loud
   */
  note(hz, seconds, loud) {
    const { context } = this;
    if (!context) return;
    const tone = context.createOscillator(),
      volume = context.createGain();
    tone.frequency.value = hz;
    volume.gain.setValueAtTime(loud, context.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.0001, context.currentTime + seconds);
    tone.connect(volume).connect(context.destination);
    tone.start();
    tone.stop(context.currentTime + seconds);
  }
}
