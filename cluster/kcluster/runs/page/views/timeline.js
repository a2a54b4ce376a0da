// @ts-check
// The view of a whole run: lanes of actions, brokers, partitions and clients over time.

import { button, h } from "../dom.js";
import { sideTrees } from "../timeline/findings.js";
import { closePanels, togglePanel } from "../timeline/fit.js";
import { Timeline } from "../timeline/timeline.js";
import { registerView } from "../views.js";
import { number } from "../words.js";

/** @import { Page } from "../page.js" */
/** @import { Inside, Lane, Tree } from "../types.js" */

/** @type {Timeline | null} */
let timeline = null;

registerView("timeline", {
  above: (page) => whenReady(page, (shown) => [aboutTree(shown), toolsTree(shown)]) ?? [],
  tree: (page) => whenReady(page, timelineTree) ?? [],
  below: (page) => whenReady(page, (shown) => [legendTree(shown)]) ?? [],
  side: (page) => whenReady(page, sideTrees) ?? [],
  keys: (page) => whenReady(page, keysOf) ?? {},
  drawn(page) {
    whenReady(page, (shown) => shown.draw());
    return false;
  },
  left: () => timeline?.left(),
});

/**
 * The result of a function of the timeline; null while the page has nothing to show yet.
 *
 * @template Result
 * @param {Page} page
 * @param {(timeline: Timeline) => Result} use
 */
function whenReady(page, use) {
  if (!timeline && page.facts) timeline = new Timeline(page, page.facts);
  return timeline && use(timeline);
}

/** @param {Timeline} shown */
const timelineTree = (shown) => [
  h(
    "section",
    {
      id: "scroll",
      tabindex: 0,
      "aria-label": "Timeline",
      onscroll: () => {
        shown.leave();
        shown.page.redraw();
      },
    },
    h(
      "div",
      {
        id: "sheet",
        onwheel: (/** @type {WheelEvent} */ event) => shown.wheel(event),
        onpointerdown: (/** @type {PointerEvent} */ event) => shown.press(event),
        onpointerleave: () => shown.leave(),
        ondblclick: (/** @type {MouseEvent} */ event) => {
          if (shown.isInPlots(event)) shown.showAll();
        },
      },
      topTree(shown),
      h(
        "div",
        { id: "rows" },
        shown.groups.map((group) => groupTree(shown, group)),
      ),
      h("div", { key: "cross", id: "cross" }),
      h("div", { key: "brush", id: "brush" }),
    ),
  ),
];

/**
 * The story, the counts, and how to play the run again.
 *
 * @param {Timeline} shown
 */
function aboutTree({ facts: { run, verdict } }) {
  const { sent = 0, acked = 0, failed = 0, unknown = 0, read = 0 } = verdict;
  return h(
    "div",
    { key: "about", id: "about" },
    run.story ? h("p", { class: "story" }, run.story) : null,
    h(
      "div",
      { class: "counts" },
      Object.entries({ sent, acked, failed, unknown, read }).map(([name, count]) =>
        h("span", { key: name }, h("b", null, number(count)), ` ${name}`),
      ),
      run.replay ? h("span", { key: "replay" }, "replay: ", h("code", null, run.replay)) : null,
    ),
  );
}

/** @param {Timeline} shown */
function toolsTree(shown) {
  const { filter, facts } = shown;
  /** @type {(part: "about" | "side" | "legend", words: string) => Tree} */
  const opener = (part, words) =>
    button(words, () => togglePanel(part), {
      id: `${part}-button`,
      "aria-controls": part,
      "aria-expanded": "false",
    });
  /** @type {(name: "quiet" | "internal", words: string, count: number) => Tree | null} */
  const choice = (name, words, count) =>
    count
      ? h(
          "label",
          { key: name, id: `with-${name}` },
          h("input", {
            id: name,
            type: "checkbox",
            checked: filter[name],
            oninput: ({ target }) => choose({ [name]: target.checked }),
          }),
          ` ${words} (${number(count)})`,
        )
      : null;
  const choose = (/** @type {Partial<typeof filter>} */ change) => {
    Object.assign(filter, change);
    shown.page.redraw();
  };
  return h(
    "div",
    { key: "tools", id: "tools" },
    button("−", () => shown.zoom(2), {
      id: "out",
      title: "Zoom out (-)",
      "aria-label": "Zoom out",
    }),
    button("+", () => shown.zoom(0.5), { id: "in", title: "Zoom in (+)", "aria-label": "Zoom in" }),
    button("Whole run", () => shown.showAll(), { id: "all", title: "Show the whole run (0)" }),
    button("‹ event", () => shown.step(-1), { id: "before", title: "Previous event (p)" }),
    button("event ›", () => shown.step(1), { id: "next", title: "Next event (n)" }),
    opener("about", "Story"),
    opener("side", "Findings"),
    opener("legend", "Legend"),
    h("span", { id: "span" }, shown.words),
    h("span", { class: "gap" }),
    facts.partitions.length < 2
      ? null
      : h(
          "label",
          { id: "find" },
          "partitions ",
          h("input", {
            id: "filter",
            type: "search",
            placeholder: "name contains",
            oninput: ({ target }) => choose({ words: target.value.trim().toLowerCase() }),
          }),
        ),
    choice("quiet", "unchanged", shown.quiet),
    choice("internal", "internal", shown.internal),
  );
}

/** @param {Timeline} shown */
const topTree = (shown) =>
  h(
    "div",
    { key: "top", id: "top" },
    h("div", { class: "label" }),
    h(
      "div",
      { class: "plots" },
      h("canvas", {
        id: "map",
        title: "Overview of the run; drag to move the view",
        onpointerdown: (/** @type {any} */ event) => shown.center(event),
        onpointermove: (/** @type {any} */ event) => shown.center(event),
      }),
      h("canvas", { id: "axis" }),
    ),
  );

/**
 * @param {Timeline} shown
 * @param {[string, Lane[]]} group
 * @returns {Inside}
 */
function groupTree(shown, [words, lanes]) {
  const visible = lanes.filter((lane) => shown.isVisible(lane));
  if (words && !lanes.length) return null;
  return [
    words ? h("div", { key: words, class: "row group" }, words) : null,
    ...visible.map((lane) => rowTree(shown, lane)),
  ];
}

/**
 * @param {Timeline} shown
 * @param {Lane} lane
 */
function rowTree(shown, lane) {
  const { key, title, sub, colour, height, tall = 0 } = lane;
  const isTall = shown.tall.has(key);
  const toggle = () => {
    if (isTall) shown.tall.delete(key);
    else shown.tall.add(key);
    shown.page.redraw();
  };
  return h(
    "div",
    { key, class: `row${tall ? " can-grow" : ""}${isTall ? " tall" : ""}`, "data-lane": key },
    h(
      "div",
      { class: "label", title: tall ? "Expand or collapse" : null, onclick: tall ? toggle : null },
      h(
        "b",
        { title },
        colour ? h("i", { class: "swatch", style: `background:${colour}` }) : null,
        title,
      ),
      sub ? h("span", null, sub) : null,
    ),
    h("div", { class: "plot" }, h("canvas", { style: `height:${isTall ? tall : height}px` })),
  );
}

/** @param {Timeline} shown */
function legendTree({ facts }) {
  const lines = (/** @type {string} */ colour, /** @type {number} */ angle) =>
    `repeating-linear-gradient(${angle}deg, ${colour} 0 2px, transparent 2px 5px)`;
  const missed = "records that the application missed, in the log where they were appended";
  /** @type {[background: string, words: string][]} */
  const entries = [
    [lines("var(--bad)", -45), "no writes"],
    [lines("var(--warn)", 45), "no reads"],
    ["var(--good)", "acked"],
    ["var(--bad)", "failed, fenced"],
    ["var(--warn)", "unknown"],
    ["var(--read)", "read"],
    ["var(--crown)", "crown: a leader is elected"],
    ...(facts.applications.length
      ? [/** @type {[string, string]} */ (["var(--bad)", missed])]
      : []),
    ["var(--wait)", "awaiting a response (bar height: square root of records)"],
  ];
  return h(
    "div",
    { key: "legend", id: "legend" },
    entries.map(([background, words]) =>
      h("span", { key: words }, h("i", { style: `background:${background}` }), words),
    ),
    h("span", { key: "strips" }, "strips below a leader: replicas in the ISR; hollow: in the ELR"),
    h(
      "span",
      { key: "hands" },
      "wheel: zoom · drag: zoom to selection · shift+drag or shift+wheel: pan · " +
        "keys: arrows, + − 0 · n, p: next, previous event · double-click: whole run",
    ),
  );
}

/**
 * What keys do, besides those of the page.
 *
 * @param {Timeline} shown
 * @returns {{ [key: string]: () => void }}
 */
function keysOf(shown) {
  const left = () => shown.pan(-0.15);
  const right = () => shown.pan(0.15);
  const nearer = () => shown.zoom(0.6);
  const farther = () => shown.zoom(1 / 0.6);
  const all = () => shown.showAll();
  return {
    ArrowLeft: left,
    a: left,
    ArrowRight: right,
    d: right,
    "+": nearer,
    "=": nearer,
    w: nearer,
    "-": farther,
    s: farther,
    0: all,
    Home: all,
    n: () => shown.step(1),
    p: () => shown.step(-1),
    Escape: () => {
      shown.choose(null);
      closePanels();
    },
  };
}
