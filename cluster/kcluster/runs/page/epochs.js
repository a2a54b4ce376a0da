// @ts-check
// What logs are filled with: a pattern per leader epoch.

import { h } from "./dom.js";

const EPOCH_COLOURS = 8;
const EPOCH_HATCHES = 5;

/** Patterns for epochs: eight colours and five hatches, so that 40 epochs differ without colour too. */
export function epochPatterns() {
  const lines = [
    [],
    ["M0 8L8 0M-2 2L2 -2M6 10L10 6"],
    ["M0 0L8 8M-2 6L2 10M6 -2L10 2"],
    ["M0 4H8"],
    ["M4 0V8"],
  ];
  return h(
    "svg",
    { width: 0, height: 0, "aria-hidden": "true", class: "patterns" },
    h(
      "defs",
      null,
      Array.from({ length: EPOCH_COLOURS * EPOCH_HATCHES }, (_, index) =>
        h(
          "pattern",
          {
            key: index,
            id: `epoch-${index}`,
            width: 8,
            height: 8,
            patternUnits: "userSpaceOnUse",
          },
          h("rect", { width: 8, height: 8, class: `epoch-fill-${index % EPOCH_COLOURS}` }),
          lines[index % EPOCH_HATCHES].map((d) => h("path", { d, class: "hatch" })),
        ),
      ),
    ),
  );
}

/** @param {number | null} epoch */
export const epochFill = (epoch) =>
  epoch === null ? "var(--gone)" : `url(#epoch-${((epoch % 40) + 40) % 40})`;

/** @type {Map<number, string>} */
const colours = new Map();

/**
 * The colour of an epoch, for canvases: as the patterns have it from the style.
 *
 * @param {number | null} epoch
 */
export function epochColour(epoch) {
  const index = (((epoch ?? 0) % EPOCH_COLOURS) + EPOCH_COLOURS) % EPOCH_COLOURS;
  let colour = colours.get(index);
  if (!colour) {
    const swatch = document.querySelector(`#epoch-${index} rect`);
    colour = swatch ? getComputedStyle(swatch).fill : "#888";
    if (swatch) colours.set(index, colour);
  }
  return colour;
}
