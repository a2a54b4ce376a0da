// @ts-check
// The views of the page.  Each is a file in views/ that registers itself here.

/** @import { View } from "./types.js" */

/** @type {View[]} */
const registered = [];

/**
 * Add a view; its tab stands at its `order`.
 *
 * @param {View} view
 */
export function registerView(view) {
  registered.push(view);
  registered.sort((a, b) => a.order - b.order);
}

/**
 * The views that a page offers, in the order of their tabs.
 *
 * @param {boolean} isRun whether the page carries a run
 */
export const viewsOf = (isRun) => registered.filter((view) => isRun || !view.forRuns);
