// @ts-check
// The records of a producer that have no outcome yet: a stack, and words.

import { h } from "./dom.js";
import { many } from "./words.js";

const MAX_DRAWN = 14;
/** Records that wait for less time are on their way. */
const LEAST_MS = 300;

/**
 * `9 records waiting, 4.2 s`; "" while records are acked as they are sent.
 *
 * @param {{ count: number, oldest: number }} waits
 * @param {number} at
 */
function waitingWords({ count, oldest }, at) {
  const since = at - oldest;
  return count && since >= LEAST_MS
    ? `${many(count, "record")} waiting, ${(since / 1000).toFixed(1)} s`
    : "";
}

/**
 * @param {string} client
 * @param {{ count: number, oldest: number }} waits
 * @param {number} at
 */
export function waitingTree(client, waits, at) {
  const words = waitingWords(waits, at);
  if (!words) return null;
  const drawn = Math.min(waits.count, MAX_DRAWN);
  return h(
    "span",
    { key: `waiting ${client}`, class: "waiting" },
    h(
      "svg",
      { width: drawn * 9 + 2, height: 16, "aria-hidden": "true" },
      Array.from({ length: drawn }, (_, index) =>
        h("rect", { key: index, x: index * 9, y: 2, width: 7, height: 12, rx: 1 }),
      ),
    ),
    words,
  );
}
