// @ts-check
// The lane of a partition: leaders, ISR and ELR, log ends and high watermarks, unavailability.

import { lasting, number, standingOf } from "../words.js";
import { box, brokerColour, clipToSpans, colours, FONT, hatch, inBar } from "./canvas.js";
import { spansOf } from "./facts.js";
import { laneOf, paintNotes } from "./lanes.js";
import { causeLines, partitionLines } from "./tips.js";

/** @import { Partition, Series } from "../model.js" */
/** @import { Facts } from "./facts.js" */
/** @import { Lane, Mark, Registration, Surface, Window } from "../types.js" */

/**
 * @param {Facts} facts
 * @param {Partition} partition
 * @returns {Lane}
 */
export function partitionLane(facts, partition) {
  const { name } = partition;
  const lane = new PartitionLane(facts, partition);
  const strips = lane.replicas.length * 5;
  const key = `p:${name}`;
  const isIsr = (/** @type {string} */ kind) => kind === "isr_shrunk" || kind === "isr_expanded";
  const shown = facts.notesOf(key).filter((note) => !note.isQuiet && !isIsr(note.kind));
  const windows = facts.windows.filter((found) => found.partition === name);
  const anomalies = facts.anomalies.filter((found) => found.partition === name);
  const marks = facts.marks.get(name) ?? [];
  return laneOf(facts, {
    key,
    title: name,
    partition,
    windows,
    anomalies,
    sub: windows.length ? `unavailable ${lasting(unavailableFor(windows))}` : "",
    height: 26 + strips + (lane.hasLog ? 34 : 0),
    tall: lane.hasLog ? 34 + strips + 170 : 0,
    paint(surface) {
      const { context } = surface;
      paintWindows(surface, windows);
      lane.paintLeaders(surface);
      lane.paintMembers(surface);
      if (lane.hasLog) lane.paintLogs(surface, marks, 25 + strips, surface.height - 4);
      paintNotes(surface, shown, 13, 4.5);
      context.fillStyle = colours.bad;
      context.font = `700 15px ${FONT.slice(5)}`;
      for (const { at } of anomalies) context.fillText("✖", surface.x(at) - 6, surface.height - 9);
      context.font = FONT;
    },
    describe: (at, reach) => [
      ...partitionLines(facts, partition, windows, at),
      ...anomalies
        .filter((anomaly) => Math.abs(anomaly.at - at) <= reach)
        .flatMap(({ name: kind, text, chain }) => [
          { mood: "bad", text: `${kind}: ${text}` },
          ...causeLines(chain),
        ]),
      ...marks
        .filter(({ from, to }) => from - reach <= at && at <= to + reach)
        .map(({ isMissed, text }) => ({ mood: isMissed ? "bad" : "warn", text })),
    ],
  });
}

/**
 * How long writes were unavailable, or else reads.
 *
 * @param {Window[]} windows
 */
function unavailableFor(windows) {
  const sum = (/** @type {string} */ kind) =>
    windows
      .filter((found) => found.kind === kind)
      .reduce((total, { from, to }) => total + to - from, 0);
  return sum("writes") || sum("reads");
}

/**
 * @param {Surface} surface
 * @param {Window[]} windows
 */
function paintWindows({ context, height, x }, windows) {
  for (const { kind, from, to } of windows) {
    const isWrites = kind === "writes";
    const colour = isWrites ? colours.bad : colours.warn;
    const x0 = x(from);
    const x1 = Math.max(x(to), x0 + 1.5);
    context.globalAlpha = 0.22;
    box(context, x0, x1, 0, height, hatch(context, colour, isWrites));
    context.globalAlpha = 0.06;
    box(context, x0, x1, 0, height, colour);
    context.globalAlpha = 1;
    box(context, x0, x1, isWrites ? 0 : height - 3, 3, colour);
  }
}

/** The spans of a partition, made when they are first painted, and how they are painted. */
class PartitionLane {
  /**
   * @param {Facts} facts
   * @param {Partition} partition
   */
  constructor(facts, partition) {
    this.facts = facts;
    this.leaders = partition.leaders;
    this.end = facts.run.end;
    this.replicas = [...new Set(this.leaders.flatMap(({ replicas }) => replicas))];
    this.series = [...partition.series].sort(([a], [b]) => a - b);
    this.hasLog = this.series.some(([, one]) => one.size > 1 || one.end(0) > 0);
    /** @type {ReturnType<typeof this.made> | null} */
    this.kept = null;
  }

  /** Who led, as registrations; when it existed; how each replica took part. */
  get spans() {
    this.kept ??= this.made();
    return this.kept;
  }

  made() {
    const { leaders, end, replicas } = this;
    const isSame = (/** @type {Registration} */ a, /** @type {Registration} */ b) =>
      a.leader === b.leader && a.epoch === b.epoch;
    return {
      led: spansOf(leaders, end, (row) => row, isSame),
      alive: spansOf(leaders, end, (row) => !row.deleted).filter(({ what }) => what),
      members: replicas.map((broker) =>
        spansOf(leaders, end, (row) => (row.deleted ? "" : standingOf(row, broker))),
      ),
    };
  }

  /** @param {number} broker */
  colour(broker) {
    return brokerColour(this.facts.placeOf(broker));
  }

  /** @param {number} broker */
  statesOf(broker) {
    return this.facts.brokers[this.facts.placeOf(broker)]?.states ?? [];
  }

  /** @param {Surface} surface */
  paintLeaders({ context, width, x }) {
    for (const { from, to, what } of this.spans.led) {
      const { leader, epoch, deleted } = what;
      const x0 = x(from);
      const x1 = x(to);
      if (x1 < 0 || x0 > width || deleted) continue;
      if (leader < 0) {
        context.strokeStyle = colours.bad;
        context.lineWidth = 1;
        context.strokeRect(x0 + 0.5, 6.5, Math.max(x1 - x0 - 1, 1), 14);
        inBar(context, "no leader", x0, x1, 13.5, colours.bad);
        continue;
      }
      box(context, x0, x1, 6, 15, this.colour(leader));
      const words = (/** @type {string} */ colour) =>
        inBar(context, `leader ${leader}, epoch ${epoch}`, x0, Math.min(x1, width), 13.5, colour);
      words("#fff");
      for (const state of this.statesOf(leader)) {
        if (state.what === "up" || state.to <= from || state.from >= to) continue;
        fade(context, x(Math.max(from, state.from)), x(Math.min(to, state.to)), () =>
          words(colours.text),
        );
      }
    }
  }

  /**
   * A strip for each replica: full in the ISR, hollow in the ELR, a hairline outside both.
   *
   * @param {Surface} surface
   */
  paintMembers({ context, width, x }) {
    for (const [place, spans] of this.spans.members.entries()) {
      const y = 24 + place * 5;
      const colour = this.colour(this.replicas[place]);
      for (const { from, to, what } of spans) {
        const x0 = x(from);
        const x1 = x(to);
        if (x1 < 0 || x0 > width) continue;
        if (what === "isr" || what === "leader") box(context, x0, x1, y, 3.5, colour);
        else if (what === "elr") {
          box(context, x0, x1, y, 1, colour);
          box(context, x0, x1, y + 2.5, 1, colour);
        } else if (what === "out") box(context, x0, x1, y + 1.5, 0.5, colours.gone);
      }
    }
  }

  /**
   * Log ends as lines, high watermarks dashed, both scaled to the view.
   *
   * @param {Surface} surface
   * @param {Mark[]} marks
   * @param {number} top
   * @param {number} bottom
   */
  paintLogs(surface, marks, top, bottom) {
    const { context, width, x } = surface;
    let low = Infinity;
    let high = -Infinity;
    for (const [, one] of this.series) {
      const last = one.place(surface.to);
      for (let place = Math.max(one.place(surface.from), 0); place <= last; place++) {
        low = Math.min(low, one.end(place), one.mark(place));
        high = Math.max(high, one.end(place));
      }
    }
    if (high < low) return;
    const rail = 1.4;
    const scale = (bottom - top - rail * this.series.length) / Math.max(high - low, 1);
    const until = Math.min(x(this.end), width + 5);
    context.save();
    clipToSpans(surface, this.spans.alive);
    for (const [place, [broker, one]] of this.series.entries()) {
      const y = (/** @type {number} */ offset) => bottom - rail * place - (offset - low) * scale;
      const end = (/** @type {number} */ at) => y(one.end(at));
      context.strokeStyle = this.colour(broker);
      context.save();
      clipToSpans(
        surface,
        this.statesOf(broker).filter(({ what }) => what === "up"),
      );
      context.lineWidth = 1.6;
      stepLine(surface, one, end, until);
      context.setLineDash([3, 3]);
      context.lineWidth = 1;
      stepLine(surface, one, (at) => y(one.mark(at)), until);
      context.restore();
      context.globalAlpha = 0.3;
      stepLine(surface, one, end, until);
      context.globalAlpha = 1;
    }
    context.restore();
    paintMarks(surface, marks, (offset) => bottom - (offset - low) * scale);
    if (bottom - top > 90) {
      context.fillStyle = colours.dim;
      context.fillText(number(high), 4, top + 6);
      context.fillText(number(low), 4, bottom - 12);
    }
  }
}

/**
 * Fade a leader whose process is not running, which the controller may not know yet.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} x0
 * @param {number} x1
 * @param {() => void} again writes what stands there, in a colour that can be read on the pale one
 */
function fade(context, x0, x1, again) {
  context.globalAlpha = 0.75;
  box(context, x0, x1, 6, 15, colours.lane);
  context.globalAlpha = 1;
  context.save();
  context.beginPath();
  context.rect(x0, 6, x1 - x0, 15);
  context.clip();
  again();
  context.restore();
}

/**
 * What the application missed, in red, or did twice or out of order: where it was appended.
 *
 * @param {Surface} surface
 * @param {Mark[]} marks
 * @param {(offset: number) => number} y
 */
function paintMarks({ context, x }, marks, y) {
  for (const { isMissed, first, from, last, to } of marks) {
    const colour = isMissed ? colours.bad : colours.warn;
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 4;
    context.beginPath();
    context.moveTo(x(from), y(first));
    context.lineTo(x(to), y(last + 1));
    context.stroke();
    context.beginPath();
    context.arc(x(from), y(first), 4, 0, Math.PI * 2);
    context.fill();
  }
}

/**
 * A step line.  Of the values on one pixel only the first, the lowest and the last are drawn.
 *
 * @param {Surface} surface
 * @param {Series} series
 * @param {(place: number) => number} y of a point of the series
 * @param {number} until the end of the line, in pixels
 */
function stepLine({ context, width, x, from }, series, y, until) {
  const first = Math.max(series.place(from), 0);
  let column = -1e9;
  let before = y(first);
  context.beginPath();
  context.moveTo(Math.max(x(series.at(first)), -5), before);
  for (let place = first + 1; place < series.size; place++) {
    const at = x(series.at(place));
    if (at > width + 5) break;
    const value = y(place);
    const isNextNear = place + 1 < series.size && x(series.at(place + 1)) - column < 0.7;
    if (at - column < 0.7 && isNextNear && value <= before) continue;
    context.lineTo(at, before);
    context.lineTo(at, value);
    column = at;
    before = value;
  }
  context.lineTo(until, before);
  context.stroke();
}
