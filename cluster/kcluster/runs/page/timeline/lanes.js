// @ts-check
// The lanes of actions, the controller and brokers, and what all lanes share: marks of events.

import { moodOf } from "../words.js";
import {
  box,
  brokerColour,
  clipToSpans,
  colours,
  crownMark,
  diamond,
  hatch,
  inBar,
  moodColour,
  onPlate,
} from "./canvas.js";
import { brokerLines } from "./tips.js";

/** @import { Facts } from "./facts.js" */
/** @import { BrokerFacts, Lane, Mood, Note, SpanOf, Surface } from "../types.js" */

const STEP_PX = 16;

/**
 * A lane with what all of them have.
 *
 * @param {Facts} facts
 * @param {Pick<Lane, "key" | "title" | "height" | "paint"> & Partial<Lane>} lane
 * @returns {Lane}
 */
export const laneOf = (facts, lane) => ({
  sub: "",
  notes: facts.notesOf(lane.key),
  anomalies: [],
  windows: [],
  describe: () => [],
  ...lane,
});

/**
 * Faint lines across all lanes at the times of actions.
 *
 * @param {Surface} surface
 * @param {Note[]} actions
 */
export function paintActionLines({ context, width, height, x }, actions) {
  context.save();
  context.globalAlpha = 0.45;
  context.setLineDash([2, 3]);
  let last = -9;
  for (const note of actions) {
    const at = Math.round(x(note.at)) + 0.5;
    if (at < 0 || at > width || at - last < 2) continue;
    last = at;
    context.strokeStyle = moodColour(note.mood);
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, height);
    context.stroke();
  }
  context.restore();
}

/**
 * Marks of events, an election's a crown.  Events within a few pixels share one mark: an election's,
 * or else the worst event's.
 *
 * @param {Surface} surface
 * @param {Note[]} notes
 * @param {number} y
 * @param {number} size
 */
export function paintNotes({ context, width, x }, notes, y, size) {
  const rank = { elected: 3, bad: 2, good: 1, plain: 0 };
  /** @type {{ at: number, mood: keyof typeof rank }[]} */
  const marks = [];
  for (const note of notes) {
    const at = x(note.at);
    const mood = moodOf(note);
    if (at < -size || at > width + size) continue;
    const last = marks.at(-1);
    if (!last || at - last.at >= size * 1.5) marks.push({ at, mood });
    else if (rank[mood] > rank[last.mood]) last.mood = mood;
  }
  for (const { at, mood } of marks) {
    if (mood === "elected") crownMark(context, at, y);
    else diamond(context, at, y, size, moodColour(mood));
  }
}

// ------------------------------------------------------------------------------------ actions

/** @param {Facts} facts */
export function actionsLane(facts) {
  const { actions } = facts;
  const levels = actions.length <= 4 ? 2 : actions.length <= 12 ? 3 : 4;
  return laneOf(facts, {
    key: "actions",
    title: "faults and steps",
    sub: "actions on the cluster",
    height: levels * STEP_PX + 14,
    paint: (surface) => paintActions(surface, actions, levels),
  });
}

/**
 * @param {Surface} surface
 * @param {Note[]} actions
 * @param {number} levels how many stand above each other
 */
function paintActions({ context, width, height, x }, actions, levels) {
  const ends = new Array(levels).fill(-1e9);
  for (const { at, text, mood, count } of actionGroups(actions, x, width)) {
    const words = text + (count > 1 ? ` +${count - 1}` : "");
    const long = context.measureText(words).width + 16;
    const isLeft = at + long > width && at > width / 2;
    const begin = isLeft ? at - long : at;
    const level = ends.findIndex((end) => end < begin);
    if (level < 0) {
      diamond(context, at, height - 6, 3.5, moodColour(mood));
      continue;
    }
    const y = 3 + STEP_PX / 2 + level * STEP_PX;
    diamond(context, at, y, 5, moodColour(mood));
    ends[level] = Math.max(at, begin + long) + 4;
    context.fillStyle = colours.text;
    context.fillText(words, isLeft ? begin + 4 : at + 8, y);
  }
}

/**
 * The actions in view; those of one kind on the same pixel are grouped.
 *
 * @param {Note[]} actions
 * @param {(at: number) => number} x
 * @param {number} width
 */
function actionGroups(actions, x, width) {
  /** @type {{ at: number, kind: string, text: string, mood: Mood, count: number }[]} */
  const groups = [];
  for (const { at: time, kind, short: text, mood } of actions) {
    const at = x(time);
    if (at < -4 || at > width + 4) continue;
    const last = groups.at(-1);
    if (last && at - last.at < 1.5 && last.kind === kind && last.text === text) last.count += 1;
    else groups.push({ at, kind, text, mood, count: 1 });
  }
  return groups;
}

/** @param {Facts} facts */
export function controlLane(facts) {
  const shown = facts.notesOf("control").filter((note) => !note.isQuiet);
  return laneOf(facts, {
    key: "control",
    title: "controller, groups",
    height: 24,
    paint: (surface) => paintNotes(surface, shown, 12, 4.5),
  });
}

// ---------------------------------------------------------------------------------- brokers

/**
 * @param {Facts} facts
 * @param {BrokerFacts} broker
 * @param {number} place
 */
export function brokerLane(facts, broker, place) {
  const colour = brokerColour(place);
  const key = `b${broker.id}`;
  const shown = facts.notesOf(key).filter((note) => !note.isQuiet);
  const running = broker.states.filter(({ what }) => what === "up" || what === "paused");
  return laneOf(facts, {
    key,
    title: `broker ${broker.id}`,
    sub: broker.rack ? `rack ${broker.rack}` : "",
    colour,
    height: 34,
    paint(surface) {
      const { context, x } = surface;
      for (const span of broker.states) paintState(surface, span, colour);
      context.save();
      clipToSpans(surface, running);
      for (const span of broker.cuts) paintCut(surface, span);
      context.restore();
      for (const { from, to } of broker.fenced) box(context, x(from), x(to), 25, 4, colours.bad);
      paintNotes(surface, shown, 27, 4);
    },
    describe: (at) => brokerLines(facts, broker, at),
  });
}

/**
 * @param {Surface} surface
 * @param {SpanOf} span
 * @param {string} colour
 */
function paintState({ context, x }, { from, to, what }, colour) {
  const x0 = x(from);
  const x1 = x(to);
  if (what === "up") {
    box(context, x0, x1, 6, 16, colour);
    return;
  }
  if (what === "paused") {
    context.globalAlpha = 0.3;
    box(context, x0, x1, 6, 16, colour);
    context.globalAlpha = 1;
    box(context, x0, x1, 6, 16, hatch(context, colour, true));
  } else {
    box(context, x0, x1, 13, 2, colours.gone);
  }
  onPlate(context, what, x0, x1, what === "paused" ? colours.text : colours.bad);
}

/**
 * Cut off from the controller or most brokers: pale and hatched; fewer links: an outline.
 *
 * @param {Surface} surface
 * @param {SpanOf} span
 */
function paintCut({ context, x }, { from, to, what }) {
  const x0 = x(from);
  const x1 = x(to);
  const isOff = what.startsWith("cut off");
  if (isOff) {
    context.globalAlpha = 0.6;
    box(context, x0, x1, 6, 16, colours.lane);
    context.globalAlpha = 0.5;
    box(context, x0, x1, 6, 16, hatch(context, colours.bad, false));
    context.globalAlpha = 1;
  }
  context.strokeStyle = isOff ? colours.bad : colours.back;
  context.lineWidth = isOff ? 1.5 : 1;
  context.setLineDash([5, 3]);
  context.strokeRect(x0 + 1, 7, Math.max(x1 - x0 - 2, 1), 14);
  context.setLineDash([]);
  if (isOff) onPlate(context, what, x0 + 1, x1, colours.bad);
  else inBar(context, what, x0, x1, 14, "#fff");
}
