// @ts-check
// The parts of a gap, as bands: until it was noticed, the election, until a producer wrote again.

import { h } from "./dom.js";

/** @import { Gap } from "./types.js" */

/**
 * What follows what in a gap.
 *
 * @param {Gap} gap
 * @param {number} until
 * @returns {[kind: string, from: number, to: number][]}
 */
export function partsOf({ from, noticed, elected, written }, until) {
  const ends = [noticed ?? until, elected ?? until, written ?? until];
  return [
    ["detection", from, ends[0]],
    ["election", ends[0], ends[1]],
    ["refresh", ends[1], ends[2]],
  ];
}

/**
 * A gap as a bar of its own, by its parts.
 *
 * @param {Gap} gap
 * @param {number} until
 * @param {number} span the time that the whole width stands for
 * @param {number} width
 */
export function gapBar(gap, until, span, width) {
  const scale = width / span;
  return h(
    "svg",
    {
      viewBox: `0 0 ${width} 12`,
      preserveAspectRatio: "none",
      width,
      height: 12,
      "aria-hidden": "true",
    },
    partsOf(gap, until).map(([kind, from, to]) =>
      h("rect", {
        key: kind,
        class: `gapband ${kind}`,
        x: (from - gap.from) * scale,
        width: Math.max((to - from) * scale, 2),
        height: 12,
      }),
    ),
  );
}
