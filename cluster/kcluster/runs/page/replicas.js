// @ts-check
// The replicas of a partition at a time, as values, and their words.

import { number, processWords, STANDING_WORDS, standingOf } from "./words.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { PartitionAt, ReplicaAt, Runs } from "./types.js" */

/**
 * What a partition looks like at a time, as values: everything that is drawn.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} at
 * @returns {PartitionAt}
 */
export function partitionAt(model, partition, at) {
  const registration = model.registrationAt(partition, at);
  if (!registration || registration.deleted) return { registration, replicas: [], leader: null };
  const replicas = registration.replicas.map((broker) => {
    const point = partition.series.get(broker)?.find(at) ?? { end: 0, mark: 0, stable: -1 };
    return {
      broker,
      ...point,
      process: model.processAt(broker, at),
      fenced: model.isFenced(broker, at),
      standing: standingOf(registration, broker),
      runs: model.runsAt(partition, broker, at),
      start: model.startAt(partition, broker, at),
      diverges: point.end,
    };
  });
  const leader = replicas.find((each) => each.broker === registration.leader) ?? null;
  if (leader) for (const each of replicas) each.diverges = divergence(each, leader);
  return { registration, replicas, leader };
}

/**
 * The epoch of an offset in runs; null if there is no record.
 *
 * @param {Runs} runs
 * @param {number} offset
 */
export function epochAt(runs, offset) {
  let found = null;
  for (const [epoch, start] of runs) {
    if (start > offset) break;
    found = epoch;
  }
  return found;
}

/**
 * The first offset from which on a replica's log is not its leader's; its end if none.  As a follower
 * finds it by OffsetsForLeaderEpoch (KIP-101): in the newest epoch that both have, the shorter ends.
 * Where an epoch begins does not tell: a follower of a compacted log may see its first record later.
 *
 * @param {ReplicaAt} replica
 * @param {ReplicaAt} leader
 */
function divergence(replica, leader) {
  const areKnown = replica.runs.length && leader.runs.length;
  if (!areKnown) return Math.min(replica.end, leader.end);
  for (const [index, [epoch]] of [...replica.runs.entries()].reverse()) {
    const same = leader.runs.findIndex(([each]) => each === epoch);
    if (same < 0) continue;
    const own = replica.runs[index + 1]?.[1] ?? replica.end;
    return Math.min(own, leader.runs[same + 1]?.[1] ?? leader.end);
  }
  return Math.min(replica.start, replica.end);
}

/**
 * @param {ReplicaAt} replica
 * @param {ReplicaAt | null} leader
 */
export function replicaWords(replica, leader) {
  const words = [];
  if (replica.process.state === "up") {
    words.push(STANDING_WORDS[replica.standing]);
    if (replica.fenced) words.push("fenced");
  } else words.push(processWords(replica.process), STANDING_WORDS[replica.standing]);
  const more = leader && replica !== leader ? replica.end - leader.end : 0;
  const gone = leader && replica !== leader ? replica.end - replica.diverges : 0;
  if (gone > 0) words.push(`${number(gone)} not in the leader's log`);
  else if (more < 0) words.push(`${number(-more)} behind`);
  return words;
}

/**
 * Log end and high watermark, short; spelled out for those who hear it.
 *
 * @param {ReplicaAt} replica
 * @param {ReplicaAt | null} leader
 */
export function offsetWords(replica, leader, isLong = false) {
  const [mark, stable] = isLong ? ["high watermark", "last stable offset"] : ["HW", "LSO"];
  const words = [`end ${number(replica.end)}`];
  if (replica.mark >= 0) words.push(`${mark} ${number(replica.mark)}`);
  if (isHeldBack(replica, leader)) words.push(`${stable} ${number(replica.stable)}`);
  return words;
}

/**
 * Whether an open transaction holds back the leader's last stable offset.
 *
 * @param {ReplicaAt} replica
 * @param {ReplicaAt | null} leader
 */
export const isHeldBack = (replica, leader) =>
  replica === leader && replica.stable >= 0 && replica.stable < replica.mark;
