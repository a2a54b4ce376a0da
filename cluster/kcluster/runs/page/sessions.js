// @ts-check
// A broker's session at the controller: a ring that empties from its last heartbeat.
//
// At its end the controller fences the broker.  With reduced motion it empties in steps.

import { h } from "./dom.js";

/** @import { Model } from "./model.js" */

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const STEPS = 8;
/** Between two heartbeats, a broker in good health keeps more than this share. */
const CALM = 0.55;
const URGENT = 0.25;

/**
 * How much of its session a broker has left, 0 to 1, and the time; null without a session.
 *
 * @param {Model} model
 * @param {number} broker
 * @param {number} at
 */
export function sessionLeft(model, broker, at) {
  const session = model.sessionAt(broker, at);
  if (!session) return null;
  const left = session.expires - at;
  const share = Math.min(Math.max(left / (session.expires - session.at), 0), 1);
  return { left, share: reducedMotion.matches ? Math.ceil(share * STEPS) / STEPS : share };
}

/**
 * How urgent the next heartbeat is.
 *
 * @param {number} share of the session that is left
 */
export const urgencyOf = (share) => (share > CALM ? "calm" : share > URGENT ? "late" : "urgent");

/**
 * The ring around a broker's number.
 *
 * @param {Model} model
 * @param {number} broker
 * @param {number} at
 */
export function sessionRing(model, broker, at) {
  const left = sessionLeft(model, broker, at);
  if (!left) return null;
  return h(
    "svg",
    { viewBox: "0 0 48 48", class: `session ${urgencyOf(left.share)}`, "aria-hidden": "true" },
    h("circle", { cx: 24, cy: 24, r: 21, class: "spent" }),
    h("circle", {
      cx: 24,
      cy: 24,
      r: 21,
      pathLength: 100,
      "stroke-dasharray": `${(left.share * 100).toFixed(1)} 100`,
    }),
  );
}

/**
 * When the controller fences a silent broker, in words; "" while its heartbeats come.
 *
 * @param {Model} model
 * @param {number} broker
 * @param {number} at
 */
export function fencingWords(model, broker, at) {
  const left = sessionLeft(model, broker, at);
  return left && left.share <= CALM ? `fenced in ${(left.left / 1000).toFixed(1)} s` : "";
}
