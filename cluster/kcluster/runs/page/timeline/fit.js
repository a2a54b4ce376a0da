// @ts-check
// How the timeline fits a small screen: its lanes keep at least half of the page's height.
//
// Sizes are compared with each other, never with pixels of the screen, so that any zoom is the same.

import { byId } from "../dom.js";

const NARROW_PX = 900;
/** Parts that become a panel with a button, in the order in which they give way. */
const PARTS = /** @type {const} */ (["legend", "about", "side"]);
/** @typedef {(typeof PARTS)[number]} Part */

const { classList } = document.body;

/** @param {Element} element */
const heightOf = (element) => element.getBoundingClientRect().height;

/** Whether the lanes, without the overview and the axis above them, have half of the height. */
function lanesHaveHalf() {
  const lanes = heightOf(byId("scroll")) - heightOf(byId("top"));
  return lanes * 2 >= heightOf(document.body);
}

/** Give the lanes their room; an open panel stays open. */
export function fit() {
  const opened = PARTS.find(isOpen);
  leaveFit();
  classList.toggle("narrow", document.body.clientWidth < NARROW_PX);
  for (const part of PARTS) {
    if (lanesHaveHalf()) break;
    // Beside the lanes the findings take no height.
    if (part !== "side" || classList.contains("narrow")) classList.add(`off-${part}`);
  }
  if (!lanesHaveHalf()) classList.add("tight");
  if (opened) openPanel(opened, true);
}

/** Make the page as it is without a timeline. */
export function leaveFit() {
  classList.remove("narrow", "tight", ...PARTS.flatMap((part) => [`off-${part}`, `show-${part}`]));
}

/** @param {Part} part */
const isOpen = (part) => classList.contains(`show-${part}`);

/**
 * Open or close the panel of a part; one at a time.  What is no panel stays as it is.
 *
 * @param {Part} part
 * @param {boolean} wanted
 */
export function openPanel(part, wanted) {
  // The story opens below the buttons, so that its own stays in reach.
  byId("about").style.top = `${byId("tools").getBoundingClientRect().bottom}px`;
  for (const each of PARTS) {
    if (each !== part && !wanted) continue;
    const isShown = each === part && wanted && classList.contains(`off-${part}`);
    classList.toggle(`show-${each}`, isShown);
    byId(`${each}-button`).setAttribute("aria-expanded", String(isShown));
  }
}

/** @param {Part} part */
export const togglePanel = (part) => openPanel(part, !isOpen(part));

/** Close all panels. */
export function closePanels() {
  for (const part of PARTS) openPanel(part, false);
}
