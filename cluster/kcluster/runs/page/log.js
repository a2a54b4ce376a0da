// @ts-check
// A replica's log as cells by epoch, with its high watermark.
//
// The newest records are cells, one each; what is before them is drawn as runs, one per epoch.

import { h, onEnter } from "./dom.js";
import { epochFill } from "./epochs.js";
import { epochAt, isHeldBack } from "./replicas.js";

/** @import { Partition } from "./model.js" */
/** @import { LogPage, PartitionAt, ReplicaAt, Scale, Tree } from "./types.js" */

const CELL_PX = 24;
const MAX_CELLS = 40;
const RUNS_SHARE = 0.24;
/** Room at the right for the bar of the high watermark. */
export const MARK_PX = 6;
/** Room at the right of the logs for what travels between them. */
export const WIRE_ROOM_PX = 66;
const LANE_PX = 64;
const LANE_PX_OF_MANY = 46;

/**
 * From offsets to pixels: cells from `first` on at the right, runs before them at the left.
 *
 * @param {ReplicaAt[]} replicas
 * @param {number} laneWidth
 * @returns {Scale}
 */
export function scaleOf(replicas, laneWidth) {
  const width = laneWidth - MARK_PX;
  const start = Math.min(...replicas.map((each) => each.start));
  const end = Math.max(...replicas.map((each) => each.end), start + 1);
  const roomy = Math.min(MAX_CELLS, Math.max(8, Math.floor(width / cellWidth())));
  if (end - start <= roomy) {
    const cell = width / roomy;
    return { start, first: start, end, cell, runs: 0, x: (offset) => (offset - start) * cell };
  }
  const runs = width * RUNS_SHARE;
  const count = Math.max(6, Math.floor(roomy * (1 - RUNS_SHARE)));
  const cell = (width - runs) / count,
    first = end - count;
  return {
    start,
    first,
    end,
    cell,
    runs,
    x: (offset) =>
      offset >= first
        ? runs + (offset - first) * cell
        : ((offset - start) / (first - start)) * runs,
  };
}

const cellWidth = () => (document.body.classList.contains("projector") ? CELL_PX * 1.8 : CELL_PX);

/**
 * The width of a log in a view of that width.
 *
 * @param {number} width
 * @param {number} [room] at the right of it
 */
export const laneWidth = (width, room = 0) =>
  width < 560 ? width - 4 - room : width - labelWidth() - 12 - room;
const labelWidth = () => (document.body.classList.contains("projector") ? 300 : 190);

/**
 * The first cell of each partition as it was drawn last.
 *
 * @type {WeakMap<Partition, number>}
 */
const firstCells = new WeakMap();

/**
 * Whether most of the cells are other records than in the last drawing: elements then keep their
 * place, not their record, and hardly anything of them is painted again.
 *
 * @param {Partition} partition
 * @param {Scale} scale
 */
export function isRacing(partition, { first, end }) {
  const before = firstCells.get(partition) ?? first;
  firstCells.set(partition, first);
  return Math.abs(first - before) > (end - first) / 2;
}

/**
 * A replica's log.  `lane`: its width; `tall`: its height; `coming`: the first offset that is still
 * on its way to the replica; `isFast`: of `isRacing`.
 *
 * @param {LogPage} page
 * @param {Partition} partition
 * @param {PartitionAt} shown
 * @param {ReplicaAt} replica
 * @param {Scale} scale
 * @param {{ lane: number, tall?: number, coming?: number, isFast?: boolean }} size
 */
export function logTree(page, partition, shown, replica, scale, size) {
  const { lane, coming = Infinity } = size;
  const tall = size.tall ?? (shown.replicas.length > 4 ? LANE_PX_OF_MANY : LANE_PX),
    y = 9,
    height = tall - 20;
  const committed = shown.leader ? Math.max(shown.leader.mark, replica.mark) : replica.mark;
  const isDown = replica.process.state === "down";
  const cells = [];
  for (let offset = Math.max(scale.first, replica.start); offset < replica.end; offset++) {
    const epoch = epochAt(replica.runs, offset);
    const gone = shown.leader && offset >= replica.diverges && replica !== shown.leader;
    const isChosen =
      page.selected?.partition === partition &&
      page.selected.offset === offset &&
      (page.selected.epoch === epoch || page.selected.broker === replica.broker);
    const isCommitted = offset < replica.mark;
    const isUnaware = !isCommitted && !gone && offset < committed;
    const state = isCommitted ? "" : isUnaware ? " unaware" : " open";
    const words = isCommitted
      ? "committed"
      : isUnaware
        ? "committed, unknown here"
        : "not committed";
    const pick = () => page.select({ partition, offset, epoch, broker: replica.broker });
    cells.push(
      h("rect", {
        key: size.isFast ? `at ${offset - scale.first}` : offset,
        x: scale.x(offset) + 1,
        y,
        width: Math.max(scale.cell - 2, 2),
        height,
        rx: 2,
        fill: epochFill(epoch),
        role: "button",
        "data-offset": offset,
        tabindex: offset === replica.end - 1 || isChosen ? 0 : -1,
        class: `cell${state}${gone ? " gone" : ""}${offset >= coming ? " coming" : ""}${isChosen ? " chosen" : ""}`,
        "aria-label":
          `Offset ${offset}, epoch ${epoch ?? "unknown"}, ${words}` +
          `${gone ? ", not in the leader's log" : ""}`,
        onclick: pick,
        onkeydown: cellKeys(pick),
      }),
    );
  }
  const markX = scale.x(Math.min(replica.mark, coming));
  const shownStable = isHeldBack(replica, shown.leader);
  return h(
    "svg",
    {
      width: lane,
      height: tall,
      class: "log",
      "data-flight": `b${replica.broker}`,
      role: "group",
      "aria-label": `Log of broker ${replica.broker}`,
    },
    runTrees(replica, scale, y, height),
    cells,
    shownStable
      ? h("path", {
          key: "stable",
          class: "stable",
          d: `M${scale.x(replica.stable)} 2V${tall - 4}`,
        })
      : null,
    replica.mark >= 0
      ? h("path", {
          key: "mark",
          class: "mark",
          d: `M0 1V${tall - 2}m-4 0h8`,
          style: `transform:translateX(${markX.toFixed(1)}px)`,
        })
      : null,
    isDown
      ? h("path", {
          key: "cross",
          class: "dead",
          d: `M4 4L${lane - 4} ${tall - 4}m0 ${8 - tall}L4 ${tall - 4}`,
        })
      : null,
  );
}

/**
 * Enter chooses a record; arrows go to its neighbours.
 *
 * @param {() => void} pick
 */
const cellKeys =
  (pick) => (/** @type {KeyboardEvent & { currentTarget: HTMLElement }} */ event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const { currentTarget: cell } = event;
      const next =
        event.key === "ArrowLeft" ? cell.previousElementSibling : cell.nextElementSibling;
      if (next instanceof SVGElement && next.matches(".cell")) next.focus();
      event.preventDefault();
      event.stopPropagation();
    } else onEnter(pick)(event);
  };

/**
 * What is before the cells: a bar per epoch, with its number if there is room.
 *
 * @param {ReplicaAt} replica
 * @param {Scale} scale
 * @param {number} y
 * @param {number} height
 */
function runTrees(replica, scale, y, height) {
  if (!scale.runs) return [];
  /** @type {Tree[]} */
  const bars = [];
  replica.runs.forEach(([epoch, start], index) => {
    const until = Math.min(replica.runs[index + 1]?.[1] ?? replica.end, replica.end, scale.first);
    const from = Math.max(start, replica.start);
    if (until <= from) return;
    const x0 = scale.x(from),
      x1 = until >= scale.first ? scale.runs : scale.x(until);
    bars.push(
      h(
        "rect",
        {
          key: `run${index}`,
          x: x0,
          y: y + height / 5,
          width: Math.max(x1 - x0 - 1, 1),
          height: (height * 3) / 5,
          fill: epochFill(epoch),
          class: "run",
        },
        h("title", null, `offsets ${from} to ${until - 1}, epoch ${epoch}`),
      ),
    );
  });
  return bars;
}

/** The mark of a leader. */
export const crown = () =>
  h(
    "svg",
    { viewBox: "0 0 24 18", class: "crown", "aria-hidden": "true" },
    h("path", { d: "M2 16L1 4l6 5 5-8 5 8 6-5-1 12z" }),
  );
