// @ts-check
// The lanes of clients and of the application, with bars of counts.
//
// The height of a bar is the square root of its count, so that one record is visible beside hundreds.

import { lasting, many } from "../words.js";
import { colours } from "./canvas.js";
import { laneOf } from "./lanes.js";

/** @import { Facts } from "./facts.js" */
/** @import { Span } from "./span.js" */
/** @import { ApplicationFacts, ClientFacts, Lane, Line, Surface } from "../types.js" */

const BAR_PX = 3;
/** @type {[name: "acked" | "read" | "unknown" | "failed", colour: string][]} */
const PARTS = [
  ["acked", "good"],
  ["read", "read"],
  ["unknown", "warn"],
  ["failed", "bad"],
];

/**
 * @param {number[][]} rows
 * @param {number} column
 */
const sum = (rows, column) => rows.reduce((total, row) => total + row[column], 0);

/**
 * The rows of the bar at a time.
 *
 * @param {Span} span
 * @param {number} at
 * @returns {<Row extends [number, ...unknown[]] | number[]>(rows: Row[]) => Row[]}
 */
function atBar(span, at) {
  const cell = Math.max(span.lasting(BAR_PX), 1);
  const from = Math.floor(at / cell) * cell;
  return (rows) => rows.filter(([time]) => from <= time && time < from + cell);
}

// -------------------------------------------------------------------------------------- clients

/**
 * @param {Facts} facts
 * @param {ClientFacts} client
 * @param {Span} span
 * @returns {Lane}
 */
export function clientLane(facts, client, span) {
  const isSender = client.sent.length > 0 || client.ended.length > 0;
  const sent = `${many(sum(client.sent, 1), "record")} sent`;
  const read = client.reads.length ? `${many(sum(client.reads, 1), "record")} read` : "";
  return laneOf(facts, {
    key: `c:${client.name}`,
    title: client.name,
    sub: isSender ? sent : read,
    height: 48,
    paint(surface) {
      const cell = span.lasting(BAR_PX);
      const bars = barsOf(client, span, cell);
      const waits = waitsOf(client, span, surface.width);
      const most = Math.max(4, ...waits, ...[...bars.values()].map(({ all }) => all));
      const base = surface.height - 10;
      const scale = (base - 4) / Math.sqrt(most);
      paintWaits(surface, waits, base, scale);
      for (const [index, bar] of bars) paintBar(surface, index * cell, bar, base, scale);
      paintErrors(surface, client, base);
    },
    describe: (at) => clientLines(client, span, at),
  });
}

/**
 * By index in the grid of time: the counts of the bars in view.  Bars move with the view.
 *
 * @param {ClientFacts} client
 * @param {Span} span
 * @param {number} cell
 */
function barsOf(client, span, cell) {
  /** @type {Map<number, { acked: number, failed: number, unknown: number, read: number, all: number }>} */
  const bars = new Map();
  const add = (/** @type {number} */ at, acked = 0, failed = 0, unknown = 0, read = 0) => {
    if (at < span.from - cell || at > span.to) return;
    const index = Math.floor(at / cell);
    const bar = bars.get(index) ?? { acked: 0, failed: 0, unknown: 0, read: 0, all: 0 };
    bar.acked += acked;
    bar.failed += failed;
    bar.unknown += unknown;
    bar.read += read;
    bar.all += acked + failed + unknown + read;
    bars.set(index, bar);
  };
  for (const [at, acked, failed, unknown] of client.ended) add(at, acked, failed, unknown);
  for (const [at, read] of client.reads) add(at, 0, 0, 0, read);
  return bars;
}

/**
 * @param {Surface} surface
 * @param {number} from
 * @param {{ acked: number, failed: number, unknown: number, read: number, all: number }} bar
 * @param {number} base
 * @param {number} scale
 */
function paintBar({ context, x }, from, bar, base, scale) {
  const height = Math.sqrt(bar.all) * scale;
  let y = base;
  for (const [name, colour] of PARTS) {
    const part = (bar[name] / bar.all) * height;
    if (!part) continue;
    context.fillStyle = colours[/** @type {keyof typeof colours} */ (colour)];
    context.fillRect(x(from), y - part, BAR_PX - 0.6, part);
    y -= part;
  }
}

/**
 * The number of records in flight at each pixel.
 *
 * @param {ClientFacts} client
 * @param {Span} span
 * @param {number} width
 */
function waitsOf(client, span, width) {
  if (!client.sent.length) return [];
  return Array.from({ length: Math.ceil(width) }, (_, x) => client.waiting(span.timeAt(x)));
}

/**
 * Behind the bars: records in flight.
 *
 * @param {Surface} surface
 * @param {number[]} waits
 * @param {number} base
 * @param {number} scale
 */
function paintWaits({ context }, waits, base, scale) {
  context.fillStyle = colours.wait;
  for (const [x, count] of waits.entries()) {
    const height = Math.sqrt(count) * scale;
    if (count > 1) context.fillRect(x, base - height, 1, height);
  }
}

/**
 * Marks of errors, at the bottom.
 *
 * @param {Surface} surface
 * @param {ClientFacts} client
 * @param {number} base
 */
function paintErrors({ context, width, x }, client, base) {
  context.fillStyle = colours.bad;
  let last = -9;
  for (const [at] of client.errors) {
    const middle = x(at);
    if (middle < -4 || middle > width + 4 || middle - last < 4) continue;
    last = middle;
    context.beginPath();
    context.moveTo(middle - 3.5, base + 8);
    context.lineTo(middle + 3.5, base + 8);
    context.lineTo(middle, base + 2);
    context.fill();
  }
}

/**
 * What a client did during one bar.
 *
 * @param {ClientFacts} client
 * @param {Span} span
 * @param {number} at
 * @returns {Line[]}
 */
function clientLines(client, span, at) {
  const within = atBar(span, at);
  const ended = within(client.ended);
  const counts = ["acked", "failed", "unknown"].flatMap((name, column) => {
    const count = sum(ended, column + 1);
    return count ? [`${count} ${name}`] : [];
  });
  /** @type {Line[]} */
  const lines = [];
  if (counts.length) {
    const slowest = Math.max(...ended.map((row) => row[4]));
    lines.push(`${counts.join(", ")}; the slowest took ${lasting(slowest)}`);
  }
  const sent = sum(within(client.sent), 1);
  if (sent) lines.push(`${many(sent, "record")} sent`);
  const read = sum(within(client.reads), 1);
  if (read) lines.push(`${many(read, "record")} read`);
  const waiting = client.waiting(at + span.lasting(BAR_PX));
  if (waiting > 0) lines.push(`${many(waiting, "record")} awaiting a response`);
  for (const [, api, error, about, count] of within(client.errors).slice(0, 8)) {
    const times = count > 1 ? `, ${count} times` : "";
    lines.push({ mood: "bad", text: `received ${error} for ${api} ${about}${times}` });
  }
  return lines.length ? lines : ["no activity"];
}

// ---------------------------------------------------------------------------------- applications

/**
 * The lane of what an application processed of a topic, and its groups committed.
 *
 * @param {Facts} facts
 * @param {ApplicationFacts} application
 * @param {Span} span
 * @returns {Lane}
 */
export function applicationLane(facts, application, span) {
  const { topic, processed, commits, problems } = application;
  const done = many(sum(processed, 1), "record");
  return laneOf(facts, {
    key: `a:${topic}`,
    title: `application, ${topic}`,
    sub: `${done} processed${problems ? `, ${problems}` : ""}`,
    height: 48,
    paint(surface) {
      const { context, width, height, x } = surface;
      const base = height - 14;
      const cell = span.lasting(BAR_PX);
      const inView = processed.filter(([at]) => at >= span.from - cell && at <= span.to);
      const bars = Map.groupBy(inView, ([at]) => Math.floor(at / cell));
      const counts = [...bars].map(([index, rows]) => ({ at: index * cell, count: sum(rows, 1) }));
      const most = Math.max(4, ...counts.map(({ count }) => count));
      context.fillStyle = colours.read;
      for (const { at, count } of counts) {
        const tall = Math.sqrt(count / most) * (base - 4);
        context.fillRect(x(at), base - tall, BAR_PX - 0.6, tall);
      }
      // Below the bars: a tick per commit; one that was refused is red.
      for (const { at, error } of commits) {
        const middle = x(at);
        if (middle < -2 || middle > width + 2) continue;
        context.fillStyle = error ? colours.bad : colours.good;
        context.fillRect(middle - 1, base + 3, 2, 8);
      }
    },
    describe(at, reach) {
      const count = sum(atBar(span, at)(processed), 1);
      const near = commits.filter((commit) => Math.abs(commit.at - at) <= reach);
      return [
        ...(count ? [`${many(count, "record")} processed`] : []),
        ...near.map(({ group, offsets, error }) => {
          const text = `group ${group} committed ${offsets.join(", ")}`;
          return error ? { mood: "bad", text: `${text}: refused with ${error}` } : text;
        }),
      ];
    },
  });
}
