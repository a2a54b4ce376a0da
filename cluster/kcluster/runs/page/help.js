// @ts-check
// A dialog, and the one that every page has: its keys.

import { button, dialogOf, h, patch } from "./dom.js";

/** @import { Page } from "./page.js" */
/** @import { Inside } from "./types.js" */

/**
 * @param {Parameters<typeof dialogOf>[0]} id
 * @param {string} title
 * @param {Inside} content
 */
export function openDialog(id, title, content) {
  const dialog = dialogOf(id);
  patch(dialog, [
    h("h2", null, title),
    button("×", () => dialog.close(), { class: "close", "aria-label": "Close" }),
    h("div", { class: "content" }, content),
  ]);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

const KEYS = [
  ["1 – 9", "kill that broker, start it if it is down, resume it if it is paused"],
  ["space", "pause or run, whatever was clicked before"],
  ["enter", "open what has the focus: a broker, a link, a record"],
  ["← →", "the event before, the event after (of the kind chosen)"],
  ["L", "back to now"],
  ["V", "the next view"],
  ["F", "what if, from the moment shown"],
  ["K", "the same past with other values of its parameters"],
  ["Q", "questions before each action, on or off"],
  ["P", "projector: large text"],
  ["D", "dark or light"],
  ["S", "sound, on or off: a tick for each heartbeat, a chord at an election"],
  ["? ", "this help"],
  ["Esc", "close"],
];

/** @param {Page} page */
export function openHelp(page) {
  openDialog("help", "Keys", [
    h(
      "dl",
      { class: "keys" },
      KEYS.flatMap(([key, text]) => [
        h("dt", { key }, h("kbd", null, key)),
        h("dd", { key: `${key}.` }, text),
      ]),
    ),
    h(
      "p",
      null,
      "Click a broker, a link or a partition to act on it; click a record to see where it is. Drag the drawing to the left or to the right to look back.",
    ),
    h(
      "p",
      null,
      "Looking back changes nothing: the cluster runs on. Pause freezes the cluster itself, and its clients see a stall.",
    ),
    page.readOnly
      ? h("p", null, "This page holds a recorded run. There is no cluster behind it.")
      : null,
  ]);
}
