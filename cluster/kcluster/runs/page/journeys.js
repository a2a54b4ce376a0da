// @ts-check
// What travels between nodes and clients at a moment: where it is, as values.
//
// Times are the cluster's.  A message that takes less than VISIBLE_MS of the viewer's time is shown
// for VISIBLE_MS, and an answer leaves only after its request is seen to arrive.  So messages that
// take no time in the cluster are seen in their order, some tenths of a second late.

import { lastAt } from "./model.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { Call, Client, ExchangeRow, Journey, Part } from "./types.js" */

/** The shortest flight, in ms of the viewer's time. */
const VISIBLE_MS = 260;
/** The number of a link's newest calls from which the shown ones are chosen. */
const CALLS = 120;
/** The most of these calls that are all shown; of more, only some are. */
const FEW = 10;
/** How far back calls are chosen, and how far apart some of many are, in lengths of a flight. */
const CALLS_SPAN = 5;
const APART = 0.75;
/** The number of a client's newest exchanges that are looked at. */
const EXCHANGES = 40;
/** The most flights of a client that begin within the time of one flight. */
const AT_ONCE = 4;
/** The most records that are drawn of a batch. */
const MAX_CELLS = 4;
/** Where a lost message ends on its way. */
export const LOST_AT = 0.55;
/** A call that has no answer after this time gets none. */
const GIVEN_UP_MS = 60_000;

/** APIs between nodes that are drawn, and what they are called. @type {{ [api: string]: string }} */
const KINDS = { Fetch: "fetch", BrokerHeartbeat: "heartbeat", AlterPartition: "isr" };

/** What a request that waits, and an answer, are called, by the request's kind. */
const WAITING = new Map([
  ["fetch", "parked"],
  ["ask", "asked"],
]);
const ANSWERS = new Map([
  ["fetch", "answer"],
  ["ask", "read"],
]);
/** The requests with which consumers ask for records. */
const FETCHES = new Set(["Fetch", "ShareFetch"]);

/** @typedef {{ call: Call, begin: number, end: number, answered: number, back: number }} Shown */

/**
 * The newest calls of a link with the times at which they are shown.
 *
 * @param {Call[]} calls
 * @param {number} at
 * @param {number} visible the least time of a flight, of the cluster's
 * @returns {Shown[]}
 */
function shownCalls(calls, at, visible) {
  let free = -Infinity;
  return chosenCalls(calls, at, visible).map((call) => {
    const { answer } = call;
    const begin = Math.min(Math.max(call.at, free), call.at + visible);
    const end = begin + Math.max((call.arrives ?? call.at) - call.at, visible);
    const answered = answer ? Math.max(answer.at, end) : Infinity;
    const back = answer
      ? answered + Math.max((answer.arrives ?? answer.at) - answer.at, visible)
      : Infinity;
    free = answer ? back : end;
    return { call, begin, end, answered, back };
  });
}

/**
 * The calls to show: a few are all shown; of many, some are, and calls with records come first.
 *
 * @param {Call[]} calls
 * @param {number} at
 * @param {number} visible
 * @returns {Call[]}
 */
function chosenCalls(calls, at, visible) {
  const last = lastAt(calls, at);
  let first = last;
  const isRecent = (/** @type {Call} */ call) => isSeen(call, at, visible);
  while (first > 0 && first > last - CALLS && isRecent(calls[first - 1])) first -= 1;
  const found = calls.slice(Math.max(first, 0), last + 1);
  if (found.length <= FEW) return found;
  /** @type {Map<number, Call>} */
  const chosen = new Map();
  for (const call of found) {
    const bucket = Math.floor(call.at / (APART * visible));
    const other = chosen.get(bucket);
    if (!other || (carries(call) && !carries(other))) chosen.set(bucket, call);
  }
  return [...chosen.values()];
}

/**
 * Whether a call is on its way, or ended a short time ago.
 *
 * @param {Call} call
 * @param {number} at
 * @param {number} visible
 */
const isSeen = ({ answer, ended }, at, visible) =>
  (answer?.arrives ?? answer?.at ?? ended ?? at) > at - CALLS_SPAN * visible;

/** @param {Call} call */
const carries = ({ answer }) => answer?.parts.some(([, , first]) => first >= 0) ?? false;

/**
 * @param {Part[]} parts
 * @param {Partition} partition
 */
const partOf = (parts, partition) =>
  parts.find(([topic, number]) => topic === partition.topic && number === partition.number);

/**
 * Whether a broker's process has ended, with its connections.
 *
 * @param {Model} model
 * @param {number} node
 * @param {number} at
 */
const isDown = (model, node, at) => model.processAt(node, at).state === "down";

/**
 * Everything that is on its way, or waits, at a moment.
 *
 * @param {Model} model
 * @param {number} at
 * @param {number} pace how much of the cluster's time passes in the viewer's
 * @param {Partition | null} partition of which records are shown; null: of all
 * @returns {Journey[]}
 */
export function journeysAt(model, at, pace, partition) {
  const visible = VISIBLE_MS * pace;
  /** @type {Journey[]} */
  const found = [];
  const shown = partition && model.registrationAt(partition, at);
  for (const calls of model.calls.values()) {
    const [first] = calls;
    const kind = KINDS[first?.api];
    if (!kind || isDown(model, first.from, at) || isDown(model, first.to, at)) continue;
    // Of a partition: its followers' fetches from its leader.
    if (shown && (first.to !== shown.leader || !shown.replicas.includes(first.from))) continue;
    const ends = { from: `b${first.from}`, to: `b${first.to}` };
    for (const each of shownCalls(calls, at, visible))
      addCall(found, each, { kind, ...ends }, at, partition);
  }
  if (!model.calls.size && partition) addCopies(found, model, at, visible, partition);
  for (const client of model.clients.values()) {
    addExchanges(found, client, at, visible, partition);
    for (const [broker, calls] of fetchesOf(client, at, visible, partition)) {
      if (isDown(model, broker, at)) continue;
      const way = { kind: "ask", from: `c${client.name}`, to: `b${broker}` };
      for (const each of shownCalls(calls, at, visible)) addCall(found, each, way, at, partition);
    }
  }
  return found;
}

/**
 * @param {Journey[]} found
 * @param {Shown} shown
 * @param {{ kind: string, from: string, to: string }} way of the request
 * @param {number} at
 * @param {Partition | null} partition
 */
function addCall(found, { call, begin, end, answered, back }, { kind, from, to }, at, partition) {
  if (at < begin || at >= back) return;
  const words = kind === "ask" ? "" : String(call.from);
  if (at < end) {
    const isLost = call.arrives === null;
    const share = Math.min((at - begin) / (end - begin), isLost ? LOST_AT : 1);
    found.push({ kind, from, to, share, isLost, words });
  } else if (at < answered) {
    const isOver = call.arrives === null || (!call.answer && at >= endOf(call));
    const waiting = WAITING.get(kind);
    if (waiting && !isOver) found.push({ kind: waiting, from, to, share: 1, words });
  } else if (call.answer) {
    const { parts, arrives } = call.answer;
    const part = partition ? partOf(parts, partition) : parts.find(([, , first]) => first >= 0);
    const cells = part && part[2] >= 0 ? cellsOf(part[2], part[3]) : [];
    const isLost = arrives === null;
    const share = Math.min((at - answered) / (back - answered), isLost ? LOST_AT : 1);
    const answer = ANSWERS.get(kind) ?? `${kind} answer`;
    found.push({ kind: answer, from: to, to: from, share, isLost, cells });
  }
}

/**
 * When a call without an answer was given up.
 *
 * @param {Call} call
 */
const endOf = ({ at, ended }) => ended ?? at + GIVEN_UP_MS;

/**
 * A consumer's fetches by broker, as calls: the answered ones, and those that wait.
 *
 * @param {Client} client
 * @param {number} at
 * @param {number} visible
 * @param {Partition | null} partition of which records are shown; null: of all
 * @returns {Map<number, Call[]>}
 */
function fetchesOf(client, at, visible, partition) {
  /** @type {Map<number, Call[]>} */
  const found = new Map();
  const isRead = (/** @type {number} */ broker) =>
    !partition || client.fetched.has(`${broker} ${partition.name}`);
  const add = (/** @type {number} */ broker, /** @type {Call} */ call) => {
    const calls = found.get(broker);
    if (calls) calls.push(call);
    else found.set(broker, [call]);
  };
  for (const [broker, asked] of client.asking) {
    if (asked <= at && isRead(broker)) add(broker, callOf(broker, asked));
  }
  const rows = client.exchanges;
  const last = lastAt(rows, at);
  for (let i = last; i >= 0 && i > last - CALLS; i--) {
    const row = rows[i];
    if (!FETCHES.has(row.api) || row.error || !isRead(row.broker)) continue;
    const call = callOf(row.broker, row.at, row);
    const before = found.get(row.broker);
    if (before?.at(-1)?.at === row.at) before.pop(); // it is answered
    if (isSeen(call, at, visible)) add(row.broker, call);
  }
  for (const calls of found.values()) calls.reverse();
  return found;
}

/**
 * @param {number} broker
 * @param {number} at
 * @param {ExchangeRow} [row] its end
 * @returns {Call}
 */
function callOf(broker, at, row) {
  const call = { at, from: -1, to: broker, api: "Fetch", arrives: at };
  if (!row) return { ...call, answer: null };
  const { answered_ms, topic, partition, first, last } = row;
  if (answered_ms < 0) return { ...call, answer: null, ended: row.at_ms };
  /** @type {Part[]} */
  const parts = topic && first >= 0 ? [[topic, partition ?? -1, first, last, -1]] : [];
  return { ...call, answer: { at: answered_ms, arrives: answered_ms, parts } };
}

/**
 * The offsets that are drawn of a batch: the first ones.
 *
 * @param {number} first
 * @param {number} last
 */
const cellsOf = (first, last) =>
  Array.from({ length: Math.min(last - first + 1, MAX_CELLS) }, (_, index) => first + index);

/**
 * The leader's answers to followers, derived from the replicas' logs: the page of a finished run has
 * no messages between nodes.
 *
 * @param {Journey[]} found
 * @param {Model} model
 * @param {number} at
 * @param {number} visible
 * @param {Partition} partition
 */
function addCopies(found, model, at, visible, partition) {
  const leader = model.registrationAt(partition, at)?.leader ?? -1;
  for (const [broker, series] of partition.series) {
    const place = series.place(at);
    if (broker === leader || leader < 0 || place < 1) continue;
    const since = at - series.at(place);
    const first = series.end(place - 1),
      last = series.end(place) - 1;
    if (since >= visible || last < first) continue;
    found.push({
      kind: "answer",
      from: `b${leader}`,
      to: `b${broker}`,
      share: since / visible,
      cells: cellsOf(first, last),
    });
  }
}

/**
 * @param {Journey[]} found
 * @param {Client} client
 * @param {number} at
 * @param {number} visible
 * @param {Partition | null} partition
 */
function addExchanges(found, client, at, visible, partition) {
  const rows = client.exchanges;
  const here = `c${client.name}`;
  const bucket = visible / AT_ONCE;
  const last = lastAt(rows, at);
  for (let i = last; i >= 0 && i > last - EXCHANGES; i--) {
    const row = rows[i];
    if (partition && (row.topic !== partition.topic || row.partition !== partition.number))
      continue;
    const isProduce = row.api === "Produce";
    if (!isProduce && !row.error) continue;
    // Of many at once, a few: the first in each part of the time.
    const before = rows[i - 1];
    if (before && Math.floor(before.at / bucket) === Math.floor(row.at / bucket)) continue;
    const there = `b${row.broker}`;
    const cells = row.first >= 0 ? cellsOf(row.first, row.last) : [];
    const end = row.at + visible;
    if (at < end) {
      const share = (at - row.at) / visible;
      const kind = isProduce ? "produce" : FETCHES.has(row.api) ? "ask" : "request";
      found.push({ kind, from: here, to: there, share, cells });
      continue;
    }
    if (row.answered_ms < 0) continue;
    const answered = Math.max(row.answered_ms, end);
    const share = (at - answered) / visible;
    if (share < 0 || share >= 1) continue;
    const kind = row.error ? "refused" : "ack";
    found.push({ kind, from: there, to: here, share, cells, words: row.error });
  }
}

/**
 * The first of a follower's newest records that is still on its way to it; Infinity if none is.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} broker
 * @param {number} at
 * @param {number} pace
 */
export function firstComing(model, partition, broker, at, pace) {
  const leader = model.registrationAt(partition, at)?.leader ?? -1;
  const calls = model.calls.get(`${broker}>${leader} Fetch`) ?? [];
  let first = Infinity;
  for (const { call, back } of shownCalls(calls, at, VISIBLE_MS * pace)) {
    const part = call.answer && call.answer.at <= at && partOf(call.answer.parts, partition);
    if (part && part[2] >= 0 && at < back) first = Math.min(first, part[2]);
  }
  return first;
}
