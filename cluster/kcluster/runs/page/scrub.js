// @ts-check
// Looks back by dragging: the background of a drawing is dragged to the left or to the right.

/** @import { Page } from "./page.js" */

/** A shorter drag is a click. */
const LEAST_PX = 6;
/** The longest time that a drag across the whole view passes. */
const MOST_MS = 30_000;
/** Elements on which a drag does not look back. */
const OTHERS = "button, input, select, a, [role=button], .link, table";

/**
 * @param {Page} page
 * @param {HTMLElement} view
 */
export function scrubOn(page, view) {
  /** @type {{ x: number, at: number, isMoving: boolean } | null} */
  let from = null;
  view.addEventListener("pointerdown", (event) => {
    const isOther = event.target instanceof Element && event.target.closest(OTHERS) !== null;
    const isPlain = event.button === 0 && event.pointerType === "mouse" && !isOther;
    from = isPlain ? { x: event.clientX, at: page.at, isMoving: false } : null;
  });
  view.addEventListener("pointermove", (event) => {
    if (!from) return;
    const way = event.clientX - from.x;
    if (!from.isMoving && Math.abs(way) < LEAST_PX) return;
    if (!from.isMoving) view.setPointerCapture(event.pointerId);
    from.isMoving = true;
    const span = Math.min(page.model.until - page.began, MOST_MS);
    page.look(from.at + (way / view.clientWidth) * span);
  });
  const end = () => {
    from = null;
  };
  view.addEventListener("pointerup", end);
  view.addEventListener("pointercancel", end);
}
