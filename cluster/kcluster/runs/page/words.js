// @ts-check
// Times, counts, and what the page calls things.

/** @import { Note, Problem, Process, Registration, Standing } from "./types.js" */

/** What verdicts look like.  @type {{ [outcome: string]: string }} */
export const OUTCOMES = { valid: "good", invalid: "bad", unknown: "warn" };
/** What an application did wrong, in words. */
const PROBLEMS = { missed: "missed", repeated: "processed again", out_of_order: "out of order" };
/** @type {{ [state: string]: string }} */
const STATE_WORDS = { up: "up", down: "down", paused: "paused", "": "not started" };
/** @type {{ [how: string]: string }} */
const HOW_WORDS = { kill: "killed", clean: "shut down", power: "power lost", wipe: "wiped" };

/**
 * The class by which an event is coloured; elections have a colour of their own.
 *
 * @param {Note} note
 */
export const moodOf = ({ kind, mood }) => (kind === "leader_elected" ? "elected" : mood);

/**
 * A whole number with commas.  Its first toLocaleString takes a browser 10 ms.
 *
 * @param {number} value
 */
export const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
/**
 * @param {number} count
 * @param {string} what
 */
export const many = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/**
 * A moment since the start of the record: `+12.345 s`.
 *
 * @param {number} at
 * @param {number | null} began
 */
export const clock = (at, began, digits = 3) => `+${moment(at - (began ?? 0), digits)}`;

/**
 * `12.345 s`; `12:05.3 min` from ten minutes on.
 *
 * @param {number} ms
 * @param {number} digits of a second
 */
export function moment(ms, digits) {
  if (Math.abs(ms) < 600e3) return `${(ms / 1000).toFixed(digits)} s`;
  const seconds = ((ms % 60e3) / 1000).toFixed(Math.min(digits, 1)).padStart(4, "0");
  return `${Math.floor(ms / 60e3)}:${seconds} min`;
}

/** @param {number} ms */
export function lasting(ms) {
  if (ms < 10e3) return `${number(Math.round(ms))} ms`;
  if (ms < 120e3) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60e3)} min ${Math.round((ms % 60e3) / 1000)} s`;
}

/**
 * `15 missed, 2 processed again`.
 *
 * @param {Problem[]} problems
 */
export const problemWords = (problems) =>
  Object.entries(PROBLEMS)
    .map(([name, words]) => {
      const found = problems.filter(({ problem }) => problem === name);
      const count = found.reduce((sum, each) => sum + each.count, 0);
      return count ? `${number(count)} ${words}` : "";
    })
    .filter(Boolean)
    .join(", ");

/**
 * A broker's process in words: `down (power lost)`.
 *
 * @param {Process} process
 */
export function processWords({ state, how }) {
  return state === "down" && HOW_WORDS[how] ? `down (${HOW_WORDS[how]})` : STATE_WORDS[state];
}

/**
 * The state of a broker's process, short: `up`, `killed`.
 *
 * @param {Process} process
 */
export const stateWords = ({ state, how }) => (state === "down" && HOW_WORDS[how]) || state;

/**
 * How a replica takes part: leader, in sync, eligible (ELR), out of sync.
 *
 * @param {Registration} registration
 * @param {number} broker
 * @returns {Standing}
 */
export function standingOf(registration, broker) {
  if (registration.leader === broker) return "leader";
  if (registration.isr.includes(broker)) return "isr";
  if (registration.elr.includes(broker)) return "elr";
  return "out";
}

export const STANDING_WORDS = {
  leader: "leader",
  isr: "in sync",
  elr: "eligible (ELR)",
  out: "out of sync",
};
