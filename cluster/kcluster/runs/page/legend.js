// @ts-check
// The legends: what the shapes and the colours of the views mean.

import { h } from "./dom.js";
import { epochFill } from "./epochs.js";

/** @import { Tree } from "./types.js" */

/**
 * @param {string} text
 * @param {...Tree} drawing
 */
const entry = (text, ...drawing) =>
  h(
    "span",
    { key: text, class: "entry" },
    h("svg", { width: 24, height: 16, "aria-hidden": "true" }, drawing),
    text,
  );

/**
 * @param {string} kind
 * @param {number} epoch
 */
const cell = (kind, epoch) =>
  h("rect", { width: 21, height: 13, x: 1, y: 1.5, class: `cell${kind}`, fill: epochFill(epoch) });

/** @param {string} className */
const squares = (className) => h("path", { d: "M2 3h8v10h-8zM13 3h8v10h-8z", class: className });

const token = () => [
  h("circle", { cx: 12, cy: 8, r: 6.5, class: "token" }),
  h("text", { x: 12, y: 11.5, "text-anchor": "middle", class: "token-words" }, "2"),
];

/** The entries of what travels, for both views. */
const travelling = () => [
  entry("a fetch of broker 2: followers pull", ...token()),
  entry(
    "the answer: records, high watermark",
    squares("epoch-fill-0"),
    h("path", { d: "M23 2V14", class: "mark" }),
  ),
  entry("records of a producer", squares("sent")),
  entry(
    "their ack",
    h("rect", { x: 3, y: 1, width: 18, height: 14, rx: 7, class: "acked" }),
    h("path", { d: "M8 8l3 3 5-6", class: "tick" }),
  ),
  entry("a consumer's fetch", h("circle", { cx: 12, cy: 8, r: 5.5, class: "token asking" })),
  entry("the answer: records", squares("read")),
  entry("refused", h("rect", { x: 3, y: 1, width: 18, height: 14, rx: 7, class: "refusal" })),
];

/**
 * The legend of the view of a partition.
 *
 * @param {number[]} epochs
 */
export function momentLegend(epochs) {
  const any = epochs.at(-1) ?? 0;
  return h(
    "p",
    { class: "legend" },
    epochs.map((epoch) =>
      entry(`epoch ${epoch}`, h("rect", { width: 22, height: 14, y: 1, fill: epochFill(epoch) })),
    ),
    entry("high watermark", h("path", { class: "mark", d: "M12 0V16m-4 0h8" })),
    entry("last stable offset", h("path", { class: "stable", d: "M12 0V16" })),
    entry("not committed", cell(" open", any)),
    entry("committed, but this replica does not know yet", cell(" unaware", any)),
    entry("not in the leader's log", cell(" gone", any)),
    h("span", { key: "isr", class: "entry" }, h("span", { class: "ring isr tiny" }), "in sync"),
    h(
      "span",
      { key: "elr", class: "entry" },
      h("span", { class: "ring elr tiny" }),
      "eligible (ELR)",
    ),
    session(),
    travelling(),
  );
}

/** The legend of the view of the cluster. */
export const clusterLegend = () =>
  h(
    "p",
    { class: "legend" },
    session(),
    entry("heartbeat", h("path", { d: "M12 13C2 7 6 0 12 5C18 0 22 7 12 13z", class: "beat" })),
    entry("change of an ISR", h("path", { d: "M12 1L19 8 12 15 5 8z", class: "isr" })),
    travelling(),
    entry("lost on a cut link", h("path", { d: "M7 3L17 13M17 3L7 13", class: "lost" })),
  );

const session = () =>
  h(
    "span",
    { key: "session", class: "entry" },
    h(
      "svg",
      { width: 24, height: 16, viewBox: "0 0 48 48", class: "session late", "aria-hidden": "true" },
      h("circle", { cx: 24, cy: 24, r: 20, class: "spent" }),
      h("circle", { cx: 24, cy: 24, r: 20, pathLength: 100, "stroke-dasharray": "60 100" }),
    ),
    "a heartbeat fills the ring; when it is empty, the broker is fenced",
  );
