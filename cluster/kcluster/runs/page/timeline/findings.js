// @ts-check
// The side of the timeline: the selection with its causes, the findings, and the events in view.

import { button, h } from "../dom.js";
import { clock, lasting, many, number } from "../words.js";
import { dot, lineTrees, stamp, windowLine } from "./tips.js";

/** @import { Facts } from "./facts.js" */
/** @import { Timeline } from "./timeline.js" */
/** @import { Anomaly, Inside, Manner, Note, Problem, Selection, Tree, Window } from "../types.js" */

const MAX_EVENTS = 150;
const MAX_FINDINGS = 60;
const MAX_CONSEQUENCES = 30;

/** @param {Timeline} timeline */
export const sideTrees = (timeline) => [
  timeline.chosen ? selectionTree(timeline, timeline.chosen) : null,
  h(
    "section",
    { key: "findings", id: "findings", "aria-label": "Findings" },
    h("h2", null, "Findings"),
    findings(timeline),
  ),
  eventsTree(timeline),
];

// ------------------------------------------------------------------------------------ selection

/**
 * @param {Timeline} timeline
 * @param {Selection} chosen
 */
function selectionTree(timeline, chosen) {
  const { facts } = timeline;
  const { title, at, mood, lines, links, note } = chosen;
  const after = note ? consequences(timeline, note) : null;
  return h(
    "section",
    { key: "chosen", id: "chosen", "aria-label": "Selection" },
    button("×", () => timeline.choose(null), { class: "close", title: "Close (Esc)" }),
    h("h3", { class: mood ? `${mood}-text` : "" }, title),
    at === undefined ? null : h("div", { class: "dim" }, `at ${clock(at, facts.run.began)}`),
    lineTrees(facts, lines),
    links.length
      ? h(
          "ol",
          { class: `chain${mood === "bad" ? "" : " calm"}` },
          links.map((link, key) =>
            h(
              "li",
              { key, onclick: () => timeline.reveal(link.at) },
              stamp(facts, link.at),
              link.text,
            ),
          ),
        )
      : null,
    after,
  );
}

/**
 * The events that this one caused.
 *
 * @param {Timeline} timeline
 * @param {Note} note
 */
function consequences(timeline, note) {
  const caused = timeline.facts.model.notes.filter(
    ({ cause, isQuiet }) => cause === note.id && !isQuiet,
  );
  if (!caused.length) return null;
  return [
    h("h2", { key: "consequences" }, `Consequences (${number(caused.length)})`),
    ...caused.slice(0, MAX_CONSEQUENCES).map((each) => eventTree(timeline, each, 0)),
  ];
}

/**
 * An event: its causes as links, oldest first.
 *
 * @param {Facts} facts
 * @param {Note} note
 * @returns {Selection}
 */
export const selectionOf = ({ model }, note) => ({
  title: `${note.subject}: ${note.kind.replaceAll("_", " ")}`,
  at: note.at,
  mood: note.mood === "bad" ? "bad" : "",
  lines: [],
  links: model
    .causesOf(note)
    .reverse()
    .map((each) => ({
      at: each.at,
      text: `${each.subject}: ${each.text}`,
      note: each,
      lane: each.lane,
    })),
  note,
});

// --------------------------------------------------------------------------------- findings

/** @param {Timeline} timeline */
function findings(timeline) {
  const { facts } = timeline;
  const { run, verdict, anomalies, violations, problems } = facts;
  /** @type {Inside[]} */
  const cards = [
    (verdict.degraded_lines ?? []).map((text) => card("warn", ...parted(text))),
    run.failures.map((text) => card("bad", "not as expected", text)),
    anomalies.map((found) => anomalyCard(timeline, found)),
    violations.map(({ name, subject, text, at_ms: at }) => {
      const selection = { title: name, at, mood: "bad", lines: [text], links: [] };
      return card("bad", `${name}: ${subject}`, text, () => timeline.choose(selection));
    }),
    problems.slice(0, MAX_FINDINGS).map((problem) => problemCard(timeline, problem)),
    (verdict.manners ?? []).slice(0, MAX_FINDINGS).map((manner) => mannerCard(timeline, manner)),
  ];
  if (!anomalies.length && !violations.length && !problems.length) {
    cards.push(card("good", run.outcome, verdict.reason ?? ""));
  }
  const windows = facts.windows.toSorted((a, b) => b.to - b.from - (a.to - a.from));
  const more = windows.length - MAX_FINDINGS;
  return [
    ...cards,
    windows.slice(0, MAX_FINDINGS).map((found) => windowCard(timeline, found)),
    more > 0 ? h("div", { class: "dim" }, `and ${more} more`) : null,
  ];
}

/**
 * @param {string} kind
 * @param {string} title
 * @param {string} text
 * @param {() => void} [onclick]
 */
const card = (kind, title, text, onclick) =>
  h("div", { class: `finding ${kind}`, onclick }, h("b", null, title), h("div", null, text));

/**
 * What stands before the first colon, and the rest.
 *
 * @param {string} text
 * @returns {[string, string]}
 */
function parted(text) {
  const colon = text.indexOf(": ");
  return [text.slice(0, colon), text.slice(colon + 2)];
}

/**
 * A bad habit of a client, with what to do.
 *
 * @param {Timeline} timeline
 * @param {Manner} manner
 */
function mannerCard(timeline, { habit, client, text, advice, first_ms: at }) {
  const selection = { title: habit, at, mood: "warn", lines: [text, advice], links: [] };
  return card("warn", `${habit}: ${client}`, text, () => timeline.choose(selection));
}

/**
 * @param {Timeline} timeline
 * @param {Anomaly} found
 */
function anomalyCard(timeline, found) {
  const title = `${found.name}, ${found.partition}: ${many(found.count, "record")}`;
  return card("bad", title, found.text, () => chooseAnomaly(timeline, found));
}

/**
 * @param {Timeline} timeline
 * @param {Anomaly} found
 */
export function chooseAnomaly(timeline, { name, partition, at, text, allowed, chain }) {
  timeline.choose({
    title: `${name}: ${partition}`,
    at,
    mood: "bad",
    lines: [text, ...(allowed ? [`allowed by ${allowed}`] : [])],
    links: chain,
  });
  timeline.scrollTo(`p:${partition}`);
}

/**
 * @param {Timeline} timeline
 * @param {Window} found
 */
function windowCard(timeline, found) {
  const title = `${found.partition}: no ${found.kind} for ${lasting(found.to - found.from)}`;
  const from = `from ${clock(found.from, timeline.facts.run.began)}`;
  const kind = found.kind === "writes" ? "warn" : "";
  return card(kind, title, from, () => chooseWindow(timeline, found));
}

/**
 * @param {Timeline} timeline
 * @param {Window} found
 */
export function chooseWindow(timeline, found) {
  const { kind, partition, from, to, chain } = found;
  const margin = (to - from) * 0.4;
  const times = [from, to, ...chain.map(({ at }) => at)];
  timeline.show(Math.min(...times) - margin, Math.max(...times) + margin);
  timeline.choose({
    title: `no ${kind}: ${partition}`,
    at: from,
    mood: kind === "writes" ? "bad" : "warn",
    lines: [windowLine(timeline.facts, found)],
    links: chain,
  });
  timeline.scrollTo(`p:${partition}`);
}

/**
 * What the application did wrong: where the log has the records.
 *
 * @param {Timeline} timeline
 * @param {Problem} problem
 */
function problemCard(timeline, { topic, partition, text }) {
  const [kind, rest] = parted(text);
  const title = `the application: ${kind}`;
  const name = `${topic}-${partition}`;
  const mark = timeline.facts.marks.get(name)?.find((each) => each.text === text);
  return card("bad", title, rest, () => {
    timeline.choose({ title, at: mark?.from, mood: "bad", lines: [text], links: [] });
    timeline.scrollTo(`p:${name}`);
  });
}

// ----------------------------------------------------------------------------------- events

/** @param {Timeline} timeline */
function eventsTree(timeline) {
  const folded = foldedInView(timeline);
  const rest = folded.length - MAX_EVENTS;
  return h(
    "section",
    { key: "events", id: "events", "aria-label": "Events" },
    h("h2", null, `Events in view (${number(folded.length)})`),
    folded.slice(0, MAX_EVENTS).map(({ note, more }) => eventTree(timeline, note, more)),
    rest > 0 ? h("div", { class: "dim" }, `and ${number(rest)} more: zoom in`) : null,
  );
}

/**
 * The events in view; those of partitions with the same kind, time and cause share a line.
 *
 * @param {Timeline} timeline
 */
function foldedInView({ facts, span }) {
  /** @type {Map<string, { note: Note, more: number }>} */
  const folded = new Map();
  for (const note of facts.story) {
    if (note.at < span.from || note.at > span.to) continue;
    const key = note.lane.startsWith("p:") ? `${note.kind} ${note.at} ${note.cause}` : note.id;
    const first = folded.get(key);
    if (first) first.more += 1;
    else folded.set(key, { note, more: 0 });
  }
  return [...folded.values()];
}

/**
 * @param {Timeline} timeline
 * @param {Note} note
 * @param {number} more how many more of its kind it stands for
 * @returns {Tree}
 */
const eventTree = (timeline, note, more) =>
  h(
    "div",
    { key: note.id, class: "event", onclick: () => timeline.chooseNote(note) },
    dot(note),
    stamp(timeline.facts, note.at),
    `${note.subject}: ${note.text}`,
    more ? h("span", { class: "dim" }, `  and ${more} more of this kind`) : null,
  );
