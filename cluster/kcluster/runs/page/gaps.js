// @ts-check
// The times in which no client could write to a partition because its leader was lost, in three
// parts: until the loss was noticed, until another leader was elected, until a client reached it.

import { lastAt } from "./model.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { Gap, Registration } from "./types.js" */

/** The time, in the cluster, for which the gaps that were found are not looked for again. */
const FRESH_MS = 100;

/** @type {WeakMap<Partition, { until: number, rows: number, gaps: Gap[] }>} */
const known = new WeakMap();

/**
 * The gaps of a partition, oldest first.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @returns {Gap[]}
 */
export function gapsOf(model, partition) {
  const found = known.get(partition);
  const rows = partition.leaders.length;
  const isFresh = found?.rows === rows && Math.abs(model.until - found.until) < FRESH_MS;
  if (found && isFresh) return found.gaps;
  const gaps = findGaps(model, partition);
  known.set(partition, { until: model.until, rows, gaps });
  return gaps;
}

/**
 * @param {Model} model
 * @param {Partition} partition
 */
function findGaps(model, partition) {
  const gaps = [];
  /** @type {Registration | null} */
  let before = null;
  /** When its leader was taken from the partition; null: it has not been yet. */
  let ended = null;
  for (const registration of partition.leaders) {
    if (before && ended === null && registration.leader !== before.leader) ended = registration.at;
    if (registration.leader < 0) continue;
    if (before && ended !== null) {
      const gap = gapBetween(model, partition, before.leader, ended, registration);
      if (gap) gaps.push(gap);
    }
    [before, ended] = [registration, null];
  }
  const open = before && gapBetween(model, partition, before.leader, ended ?? model.until, null);
  return open ? [...gaps, open] : gaps;
}

/**
 * The gap between the loss of a leader and the first write at the next one; null if it was not
 * lost, but moved.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} leader
 * @param {number} ended when it was taken from the partition, or the end of what is known
 * @param {Registration | null} next
 * @returns {Gap | null}
 */
function gapBetween(model, partition, leader, ended, next) {
  const lost = lostAt(model, leader, ended);
  if (lost === null) return null;
  const { fenced } = model.broker(leader);
  const fencing = fenced.find((row) => row.fenced && row.at >= lost && row.at <= ended);
  const noticed = fencing?.at ?? null;
  if (next && noticed === null) return null; // the broker had given up its leaderships itself
  const written = next ? firstWrite(model, partition, next) : null;
  return { leader, from: lost, noticed, elected: next?.at ?? null, written };
}

/**
 * The time since which a broker has not been reachable for clients or the controller; null if it is
 * reachable.
 *
 * @param {Model} model
 * @param {number} broker
 * @param {number} until
 */
function lostAt(model, broker, until) {
  const process = model.processAt(broker, until);
  if (process.state === "down" || process.state === "paused") return process.at;
  const cuts = model.links.get(`${broker}>${model.controllerNode}`)?.cuts ?? [];
  const cut = cuts[lastAt(cuts, until)];
  return cut?.cut ? cut.at : null;
}

/**
 * When a producer had its first ack of a new leader or, if none asks for acks, when the leader had its
 * first records; null if none has reached it yet.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {Registration} registration
 */
function firstWrite(model, partition, { at, leader }) {
  let first = Infinity,
    hasAcks = false;
  for (const { exchanges } of model.clients.values()) {
    for (let i = Math.max(lastAt(exchanges, at - 60_000), 0); i < exchanges.length; i++) {
      const row = exchanges[i];
      if (row.api !== "Produce" || row.topic !== partition.topic) continue;
      if (row.partition !== partition.number || row.answered_ms < 0) continue;
      hasAcks = true;
      if (row.broker !== leader || row.error || row.answered_ms < at) continue;
      first = Math.min(first, row.answered_ms);
      break;
    }
  }
  if (hasAcks) return first < Infinity ? first : null;
  const { appends } = partition;
  const found = appends.find((batch) => batch.broker === leader && batch.at >= at);
  return found?.at ?? (appends.length ? null : at);
}

/** @param {number} ms */
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/**
 * A gap as it is known at a moment, in words.
 *
 * @param {Gap} gap
 * @param {number} at
 */
export function gapWords(gap, at) {
  const { leader, from, noticed, written } = gap;
  if (noticed === null || at < noticed)
    return `No client can write: broker ${leader} has been gone for ${seconds(at - from)}, and the controller has not noticed it yet.`;
  const parts = partWords(gap, at);
  if (written !== null && at >= written)
    return `No client could write for ${seconds(written - from)}: ${parts}.`;
  const verb = gap.elected === null || at < gap.elected ? "can write" : "has written";
  return `No client ${verb} for ${seconds(at - from)}: ${parts}.`;
}

/**
 * The parts of a gap, in words.
 *
 * @param {Gap} gap
 * @param {number} at
 */
export function partWords({ from, noticed, elected, written }, at) {
  if (noticed === null || at < noticed) return "the controller has not noticed it yet";
  const detection = `${seconds(noticed - from)} until it was noticed`;
  if (elected === null || at < elected) return `${detection}; no other replica may lead`;
  const election = `${detection}, ${seconds(elected - noticed)} for the election`;
  return written === null || at < written
    ? `${election}; no producer has reached the new leader yet`
    : `${election}, ${seconds(written - elected)} until a producer reached the new leader`;
}

/**
 * The last gap that began before a moment; null if there was none.
 *
 * @param {Model} model
 * @param {Partition | null} partition
 * @param {number} at
 */
export const gapAt = (model, partition, at) =>
  partition ? (gapsOf(model, partition).findLast((gap) => gap.from <= at) ?? null) : null;
