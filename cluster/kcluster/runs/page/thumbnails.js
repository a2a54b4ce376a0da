// @ts-check
// Small pictures along the bar of time, one per leader epoch of a partition: who leads, who is in
// sync, who is dead when the epoch begins.

import { h } from "./dom.js";
import { partitionAt } from "./replicas.js";
import { clock, processWords, STANDING_WORDS } from "./words.js";

/** @import { Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Registration, Tree } from "./types.js" */

const REPLICA_PX = 15;
/** The time that a running cluster's pictures stay where they are. */
const REST_MS = 500;
/** The most replicas that a picture has room for. */
const MOST = 5;
/** What stands beside the track: the padding of the bar and of the slider. */
const BESIDE_PX = 44;

/**
 * The pictures as they were made last, and what of: a tree that stays costs a frame nothing.
 *
 * @type {{ of: unknown[], tree: Tree | null }}
 */
const made = { of: [], tree: null };

/**
 * The pictures of a partition's epochs; null if it has one epoch only.
 *
 * @param {Page} page
 * @param {Partition} partition
 * @param {number} span the time that the track stands for
 */
export function epochPictures(page, partition, span) {
  const width = innerWidth - BESIDE_PX;
  const scale = document.body.classList.contains("projector") ? 1.6 : 1;
  const { leaders } = partition;
  const current = page.model.registrationAt(partition, page.at)?.epoch;
  const of = [partition, leaders.at(-1), current, width, scale, Math.round(span / REST_MS)];
  if (of.some((value, place) => value !== made.of[place]))
    Object.assign(made, {
      of,
      tree: picturesTree(page, partition, span, { width, scale }, current),
    });
  return made.tree;
}

/**
 * @param {Page} page
 * @param {Partition} partition
 * @param {number} span
 * @param {{ width: number, scale: number }} size of the track, and of the pictures
 * @param {number | undefined} current the epoch that is shown
 */
function picturesTree(page, partition, span, { width, scale }, current) {
  const epochs = partition.leaders.filter(
    (row, place, rows) => !row.deleted && row.epoch !== rows[place - 1]?.epoch,
  );
  if (epochs.length < 2) return null;
  const wide = scale * REPLICA_PX * Math.min(epochs[0].replicas.length, MOST) + 12;
  const shown = epochs.slice(-Math.max(Math.floor(width / wide), 1));
  const places = placesOf(
    shown.map(({ at }) => ((at - page.began) / span) * width),
    wide,
    width,
  );
  return h(
    "div",
    { class: "epochs", role: "group", "aria-label": `Leader epochs of ${partition.name}` },
    shown.map((row, place) => {
      const words = wordsOf(page, partition, row);
      return h(
        "button",
        {
          key: row.epoch,
          type: "button",
          class: row.leader < 0 ? "bad" : "",
          style: `left:${places[place].toFixed(1)}px`,
          "aria-label": words,
          title: words,
          "aria-current": row.epoch === current ? "time" : null,
          onclick: () => page.look(row.at),
        },
        pictureTree(page, partition, row, scale),
      );
    }),
  );
}

/**
 * Places from the left, in order, that do not overlap: as near as there is room to where they belong.
 *
 * @param {number[]} wanted
 * @param {number} wide of each
 * @param {number} width of all
 */
export function placesOf(wanted, wide, width) {
  let end = 0;
  const places = wanted.map((x) => {
    end = Math.max(x, end) + wide;
    return end - wide;
  });
  let least = width;
  for (let i = places.length - 1; i >= 0; i--) {
    least = Math.min(places[i], least - wide);
    places[i] = Math.max(least, 0);
  }
  return places;
}

/**
 * @param {Page} page
 * @param {Partition} partition
 * @param {Registration} row
 */
function wordsOf({ model, began }, partition, row) {
  const replicas = partitionAt(model, partition, row.at).replicas.map(
    ({ broker, process, standing }) =>
      `broker ${broker} ${process.state === "up" ? STANDING_WORDS[standing] : processWords(process)}`,
  );
  return `Epoch ${row.epoch}, from ${clock(row.at, began)}: ${replicas.join(", ")}`;
}

/**
 * @param {Page} page
 * @param {Partition} partition
 * @param {Registration} row
 * @param {number} scale
 */
function pictureTree({ model }, partition, row, scale) {
  const { replicas } = partitionAt(model, partition, row.at);
  const shown = replicas.slice(0, MOST);
  return h(
    "svg",
    {
      viewBox: `0 0 ${REPLICA_PX * shown.length} 16`,
      width: scale * REPLICA_PX * shown.length,
      height: scale * 16,
      "aria-hidden": "true",
    },
    shown.map(({ broker, process, standing }, place) => {
      const x = REPLICA_PX * place + 7.5;
      const isDead = process.state !== "up";
      return [
        h("circle", { key: broker, cx: x, cy: 8, r: 6, class: isDead ? "dead" : standing }),
        isDead
          ? h("path", { key: broker, d: `M${x - 4} 4l8 8m0 -8l-8 8`, class: "cross" })
          : h("text", { key: broker, x, y: 11, "text-anchor": "middle" }, String(broker)),
      ];
    }),
  );
}
