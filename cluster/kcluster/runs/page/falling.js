// @ts-check
// Records that a replica drops because its leader does not have them: they fall off its log.

import { h } from "./dom.js";
import { epochFill } from "./epochs.js";
import { epochAt } from "./replicas.js";
import { many } from "./words.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { Fall, Scale } from "./types.js" */

/** How long records fall, and how long the words stand, in the viewer's time. */
const FALL_MS = 1_200;
const WORDS_MS = 6_000;
/** The leader's end offset of a follower that asked no leader (events/partitions.py). */
const NOT_ASKED = -1;
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * The truncations of a partition's replicas that are seen at a moment.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} at
 * @param {number} pace
 * @returns {Fall[]}
 */
export function truncationsAt(model, partition, at, pace) {
  const found = [];
  for (const note of model.storyUntil(at, 60)) {
    if (note.at < at - WORDS_MS * pace) break;
    const { topic, partition: number, broker = -1, to_offset: to, from_offset: from } = note.event;
    const { high_watermark = 0, leader_end_offset } = note.event;
    if (note.kind !== "log_truncated" || topic !== partition.topic || number !== partition.number)
      continue;
    if (to === undefined || from === undefined) continue;
    const runs = model.runsAt(partition, broker, note.at - 1);
    const acked = ackedEarly(model, partition, broker, to, from, note.at);
    const batch = model.batchOf(partition, to, epochAt(runs, to) ?? -1);
    const wasAlone = batch?.isr.length === 1;
    const share = Math.min((at - note.at) / (FALL_MS * pace), 1);
    const committed = Math.max(Math.min(from, high_watermark) - to, 0);
    const isUnasked = leader_end_offset === NOT_ASKED;
    found.push({ broker, to, from, runs, acked, committed, isUnasked, wasAlone, share });
  }
  return found;
}

/**
 * How many of the records were acked by the broker that drops them.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} broker
 * @param {number} to the first that falls
 * @param {number} from the end of the log until then
 * @param {number} at
 */
function ackedEarly(model, partition, broker, to, from, at) {
  const acked = new Set();
  for (const { exchanges } of model.clients.values()) {
    for (const row of exchanges) {
      if (row.at > at) break;
      const isAck = row.api === "Produce" && row.broker === broker && !row.error;
      if (!isAck || row.answered_ms < 0 || row.last < to || row.first >= from) continue;
      if (row.topic !== partition.topic || row.partition !== partition.number) continue;
      for (let offset = Math.max(row.first, to); offset <= row.last && offset < from; offset++)
        acked.add(offset);
    }
  }
  return acked.size;
}

/** @param {Fall} fall */
function fallWords({ to, from, acked, committed, isUnasked, wasAlone }) {
  const fell = `${many(from - to, "record")} truncated`;
  const it = from - to === 1 ? "it" : "them";
  if (isUnasked) return `${fell}: above its own high watermark, as before KIP-101.`;
  return `${fell}: the leader does not have ${it}. ${judged(acked, committed, wasAlone)}`;
}

/**
 * @param {number} acked
 * @param {number} committed
 * @param {boolean} wasAlone
 */
function judged(acked, committed, wasAlone) {
  if (!acked) return "No producer had an ack for any of them: no promise is broken.";
  const had = `${many(acked, "record")} had been acked`;
  if (wasAlone)
    return `${had} while the ISR was this broker alone: min.insync.replicas=1 allows that.`;
  if (committed) return `${had}; ${committed} were below this broker's high watermark.`;
  return `${had} before the followers had ${acked === 1 ? "it" : "them"}: acks=1 allows that.`;
}

/**
 * @param {Fall} fall
 * @param {Scale} scale
 * @param {{ lane: number, tall: number }} size
 */
export function fallingTree(fall, scale, { lane, tall }) {
  const { share, to, from, runs } = fall;
  const cells = [];
  const isFalling = share < 1 && !reducedMotion.matches;
  for (let offset = Math.max(to, scale.first); isFalling && offset < from; offset++) {
    const late = Math.max(0, share * 1.3 - (0.3 * (offset - to)) / (from - to));
    cells.push(
      h("rect", {
        key: offset,
        x: scale.x(offset) + 1,
        y: 9,
        width: Math.max(scale.cell - 2, 2),
        height: tall - 20,
        rx: 2,
        fill: epochFill(epochAt(runs, offset)),
        class: "cell gone",
        style:
          `transform: translateY(${(late * late * tall * 1.4).toFixed(1)}px) ` +
          `rotate(${(late * 14).toFixed(1)}deg); opacity: ${Math.max(1 - late, 0).toFixed(2)}`,
      }),
    );
  }
  return h(
    "div",
    { key: "falling", class: "falling" },
    h("svg", { width: lane, height: tall, "aria-hidden": "true" }, cells),
    h("span", { class: fall.acked ? "bad-text" : "dim" }, fallWords(fall)),
  );
}
