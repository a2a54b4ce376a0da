// @ts-check
// The bar that chooses the moment that is shown.

import { button, h } from "./dom.js";
import { gapBar, partsOf } from "./gap_bands.js";
import { gapAt, gapsOf, gapWords } from "./gaps.js";
import { CROWN } from "./marks.js";
import { epochPictures } from "./thumbnails.js";
import { clock, lasting, moodOf } from "./words.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Time } from "./time.js" */

const SPEEDS = [0.01, 0.1, 0.25, 0.5, 1];
const STEP_KINDS = [
  ["any", "any event"],
  ["leader_elected", "leader elected"],
  ["broker_fenced", "broker fenced"],
  ["isr_shrunk", "ISR shrunk"],
  ["isr_expanded", "ISR expanded"],
  ["log_truncated", "log truncated"],
  ["partition_offline", "partition offline"],
  ["group_rebalanced", "group rebalanced"],
  ["group_assigned", "group assigned"],
  ["transaction_ended", "transaction ended"],
];
const MAX_MARKS = 240;

/**
 * The bar: pause, step, speed, slider with marks, back to now, fork.
 *
 * @param {Page} page
 */
export function timeBar(page) {
  const { time, controls } = page;
  const { model } = time;
  const span = Math.max(model.until - time.began, 1);
  const stopped = time.isLive ? time.clock.paused : !time.playing;
  const words = time.isLive
    ? time.clock.paused
      ? "The cluster is frozen. Its clients see a stall."
      : time.clock.speed < 1
        ? "slow motion"
        : "now"
    : time.isComplete
      ? ""
      : `looking back ${lasting(model.until - time.at)}; the cluster ${time.clock.paused ? "is frozen" : "runs on"}`;
  const partition = page.shownPartition;
  const gap = gapAt(model, partition, time.at);
  const end = gap?.written ?? gap?.elected ?? gap?.noticed ?? 0;
  const speed = time.isLive ? time.clock.speed : time.speed;
  const speeds = SPEEDS.includes(speed) ? SPEEDS : [...SPEEDS, speed];
  return [
    h(
      "div",
      { class: "track" },
      h(
        "svg",
        {
          class: "marks",
          viewBox: "0 0 1000 14",
          preserveAspectRatio: "none",
          "aria-hidden": "true",
        },
        partition ? bandsOf(model, partition, time, span) : null,
        marksOf(model, time, span),
      ),
      h("input", {
        id: "slider",
        type: "range",
        min: 0,
        max: span,
        step: 1,
        value: String(Math.round(time.at - time.began)),
        "aria-label": "Moment shown",
        "aria-valuetext": clock(time.at, time.began),
        oninput: (event) => page.look(time.began + Number(event.target.value)),
      }),
    ),
    partition ? epochPictures(page, partition, span) : null,
    gap
      ? h(
          "p",
          { key: "gap", class: "gapwords" },
          end > gap.from ? gapBar(gap, end, end - gap.from, 120) : null,
          h("b", null, `${partition?.name}: `),
          gapWords(gap, time.at),
        )
      : null,
    controls ? controls.other() : null,
    h(
      "div",
      { class: "tools" },
      button(stopped ? "▶ Run" : "❚❚ Pause", () => page.toggle(), { id: "pause", title: "Space" }),
      button("◀ event", () => page.step(-1), { id: "back", title: "Left arrow" }),
      button("event ▶", () => page.step(1), {
        id: "step",
        title: "Right arrow",
        disabled: page.stepping === true,
      }),
      h(
        "label",
        null,
        "to ",
        h(
          "select",
          {
            id: "kind",
            "aria-label": "Kind of event to step to",
            onchange: (event) => page.chooseKind(event.target.value),
          },
          STEP_KINDS.map(([kind, text]) =>
            h("option", { key: kind, value: kind, selected: kind === time.kind }, text),
          ),
        ),
      ),
      h(
        "label",
        null,
        "speed ",
        h(
          "select",
          {
            id: "speed",
            "aria-label": "Speed",
            onchange: (event) => page.setSpeed(Number(event.target.value)),
          },
          speeds.map((each) =>
            h("option", { key: each, value: each, selected: each === speed }, `${each}×`),
          ),
        ),
      ),
      h("output", { id: "moment", class: "strong" }, clock(time.at, time.began)),
      h(
        "span",
        { class: `words${time.isLive ? (time.clock.paused ? " warn-text" : "") : " accent-text"}` },
        words,
      ),
      h("span", { class: "gap" }),
      time.isLive || (time.isComplete && time.at >= model.until)
        ? null
        : button(time.isComplete ? "To the end" : "Back to now", () => page.now(), {
            id: "now-button",
            title: "L",
          }),
      controls && partition
        ? button("Other values…", () => controls.knobs.toggle(), {
            id: "knobs",
            title: "K: the same past with other values of its parameters",
            "aria-expanded": String(controls.knobs.isOpen),
          })
        : null,
      controls
        ? button("What if…", () => controls.openFork(), {
            id: "fork",
            title: "F: from here on, what if",
          })
        : null,
    ),
  ];
}

/**
 * The times in which no client could write, as bands on the track.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {Time} time
 * @param {number} span
 */
function bandsOf(model, partition, time, span) {
  const x = (/** @type {number} */ at) => ((at - time.began) / span) * 1000;
  return gapsOf(model, partition).flatMap((gap) =>
    partsOf(gap, model.until).map(([kind, from, to]) =>
      h("rect", {
        key: `gap ${gap.from} ${kind}`,
        class: `gapband ${kind}`,
        x: x(from),
        y: 0,
        width: Math.max(x(to) - x(from), kind === "election" ? 1.5 : 0.5),
        height: 14,
      }),
    ),
  );
}

/**
 * Marks of events on the track: triangles up for repairs, down for failures, a line for others.
 *
 * @param {Model} model
 * @param {Time} time
 * @param {number} span
 */
function marksOf(model, time, span) {
  const story = model.storyUntil(model.until, 4000);
  const every = Math.ceil(story.length / MAX_MARKS);
  return story
    .filter((note, index) => index % every === 0 || note.kind === "leader_elected")
    .slice(0, 2 * MAX_MARKS)
    .map((note) => {
      const x = ((note.at - time.began) / span) * 1000;
      const d =
        note.kind === "leader_elected"
          ? `M${x - 3} 12${CROWN}`
          : note.mood === "bad"
            ? `M${x - 3} 1h6l-3 9z`
            : note.mood === "good"
              ? `M${x - 3} 11h6l-3 -9z`
              : `M${x - 0.7} 2h1.4v9h-1.4z`;
      return h("path", { key: note.id, d, class: moodOf(note) });
    });
}
