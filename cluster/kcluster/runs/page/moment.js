// @ts-check
// What stands around a view of one moment: choices, the newest event, the side, the bar of time.

import { byId, h } from "./dom.js";
import { drawFlights } from "./flights.js";
import { sideTree } from "./side.js";
import { timeBar } from "./time_bar.js";
import { clock, moodOf } from "./words.js";

/** @import { Model } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Inside, View } from "./types.js" */

/**
 * A view of the moment shown.
 *
 * @param {(page: Page, width: number) => Inside[]} tree in a width in CSS pixels
 * @returns {View}
 */
export const moment = (tree) => ({
  tree(page) {
    const view = byId("view");
    page.height = view.clientHeight;
    return tree(page, view.clientWidth - 28);
  },
  choice: partitionChoice,
  newest: newestTree,
  side: sideTree,
  bar: timeBar,
  drawn(page) {
    // A legend of another height, once it is drawn, leaves another height for the picture.
    const legend = document.querySelector("#view .legend")?.clientHeight ?? 0;
    if (legend !== page.legendHeight) {
      page.legendHeight = legend;
      page.redraw();
    }
    return drawFlights(page);
  },
});

/** @param {Page} page */
function partitionChoice(page) {
  const shown = page.shownPartition?.name ?? "";
  return h(
    "label",
    null,
    "Partition ",
    h(
      "select",
      { id: "partition", onchange: (event) => page.showPartition(event.target.value) },
      page.model
        .partitionNames(page.internal)
        .map((name) => h("option", { key: name, value: name, selected: name === shown }, name)),
    ),
  );
}

/**
 * The newest event in one line, read aloud; what the cluster's page has to say goes before it.
 *
 * @param {Page} page
 * @returns {Inside[]}
 */
function newestTree(page) {
  const first = page.controls?.newest();
  if (first) return first;
  const stepped = page.model.noteById.get(page.openNote);
  const note = stepped?.at === page.at ? stepped : newestOf(page.model, page.at);
  return note
    ? [
        h("time", null, clock(note.at, page.began)),
        h("span", { class: `${moodOf(note)}-text` }, `${note.subject}: ${note.text}`),
      ]
    : [];
}

/**
 * The newest event; of those of one moment, who leads now is what people wait for.
 *
 * @param {Model} model
 * @param {number} at
 */
function newestOf(model, at) {
  const found = model.storyUntil(at, 40);
  const same = found.filter((note) => note.at === found[0].at);
  return (
    same.find((note) => note.kind === "partition_offline" || note.kind === "leader_elected") ??
    found[0]
  );
}
