// @ts-check
// The side: the record that was chosen, the newest events with their causes, the verdict.

import { h } from "./dom.js";
import { replayTree } from "./lesson.js";
import { recordTree } from "./record.js";
import { clock, moodOf, number, OUTCOMES } from "./words.js";

/** @import { Page } from "./page.js" */
/** @import { Inside, Manner, Note, Verdict } from "./types.js" */

const MAX_EVENTS = 40;
const MAX_MANNERS = 5;

/**
 * @param {Page} page
 * @returns {Inside[]}
 */
export function sideTree(page) {
  const { model, at } = page;
  const story = model.foldedUntil(at, MAX_EVENTS);
  return [
    page.controls ? page.controls.side() : replayTree(page),
    page.selected ? recordTree(page, page.selected) : null,
    page.verdict && !page.isBeforeEnd ? verdictTree(page.verdict) : null,
    h(
      "section",
      { key: "events", "aria-label": "Events" },
      h("h2", null, "Events"),
      story.length
        ? h(
            "ol",
            { class: "events" },
            story.map(([note, more]) => eventTree(page, note, more)),
          )
        : h("p", { class: "dim" }, "Nothing has happened yet."),
    ),
  ];
}

/**
 * @param {Page} page
 * @param {Note} note
 * @param {number} more
 */
function eventTree(page, note, more) {
  const isOpen = page.openNote === note.id;
  const chain = isOpen ? page.model.causesOf(note).slice(1) : [];
  return h(
    "li",
    { key: note.id, class: moodOf(note) },
    h(
      "button",
      {
        type: "button",
        "aria-expanded": String(isOpen),
        onclick: () => page.openEvent(note),
      },
      h("time", null, clock(note.at, page.began)),
      `${note.subject}: ${note.text}`,
      more ? h("span", { class: "dim" }, ` and ${number(more)} more like it`) : null,
    ),
    chain.length
      ? h(
          "ol",
          { class: "why" },
          chain.map((cause) =>
            h(
              "li",
              { key: cause.id },
              "because ",
              h("time", null, clock(cause.at, page.began)),
              `${cause.subject}: ${cause.text}`,
            ),
          ),
        )
      : null,
  );
}

/** @param {Verdict} verdict */
export function verdictTree(verdict) {
  const { outcome, reason } = verdict;
  return h(
    "section",
    { key: "verdict", class: "card", "aria-label": "Verdict" },
    h(
      "h2",
      null,
      "Verdict ",
      h("span", { class: `badge ${OUTCOMES[outcome] ?? "warn"}` }, outcome),
    ),
    reason ? h("p", null, reason) : null,
    h("p", { class: "dim" }, countsOf(verdict).join(" · ")),
    (verdict.degraded_lines ?? [])
      .slice(0, 5)
      .map((line, index) => h("p", { key: `degraded ${index}`, class: "warn-text" }, line)),
    (verdict.anomalies ?? [])
      .slice(0, 5)
      .map((each, index) =>
        h("p", { key: index, class: "bad-text" }, `${each.name}: ${each.text}`),
      ),
    mannersTree(verdict.manners ?? []),
  );
}

/**
 * Bad habits of clients, each with what to do.
 *
 * @param {Manner[]} manners
 */
function mannersTree(manners) {
  if (!manners.length) return null;
  const more = manners.length - MAX_MANNERS;
  return h(
    "div",
    { key: "manners", class: "manners", "aria-label": "Manners of clients" },
    manners
      .slice(0, MAX_MANNERS)
      .map(({ habit, client, text, advice }, index) =>
        h(
          "p",
          { key: index, class: "warn-text", title: advice },
          `${habit}: ${client}: ${text}`,
          h("span", { class: "dim" }, ` ${advice}`),
        ),
      ),
    more > 0 ? h("p", { key: "more", class: "dim" }, `and ${more} more`) : null,
  );
}

/**
 * `3 sent`, `1 acked`: those that a verdict has.
 *
 * @param {Verdict} verdict
 */
function countsOf({ sent, acked, failed, unknown, read }) {
  return Object.entries({ sent, acked, failed, unknown, read }).flatMap(([name, count]) =>
    count === undefined ? [] : [`${number(count)} ${name}`],
  );
}
