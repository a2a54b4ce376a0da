// @ts-check
// A run as the timeline shows it: states as spans of time, findings with their places, clients' counts.

import { CONTROLLER, lastAt } from "../model.js";
import { problemWords, stateWords } from "../words.js";

/** @import { Model } from "../model.js" */
/** @import { Anomaly, AnomalyValues, ApplicationFacts, BrokerFacts, Carried, ChainLink, ClientFacts, LinkValues, Mark, Note, Problem, SpanOf, Window, WindowValues } from "../types.js" */

/** The facts about a run, made once. */
export class Facts {
  /**
   * @param {Model} model
   * @param {Carried} carried
   */
  constructor(model, carried) {
    this.model = model;
    this.run = carried.run;
    this.verdict = carried.verdict ?? { outcome: this.run.outcome };
    this.problems = carried.problems;
    /** The events to read, in order. */
    this.story = model.notes.filter((note) => note.isStory && note.lane);
    this.lanes = Map.groupBy(model.notes, (note) => note.lane);
    this.actions = this.notesOf("actions");
    this.brokers = brokersOf(model, this.run);
    this.windows = (this.verdict.windows ?? []).map((each) => this.#window(each));
    this.anomalies = (this.verdict.anomalies ?? []).map((each) => this.#anomaly(each));
    this.violations = this.verdict.violations ?? [];
    this.marks = Map.groupBy(this.problems.flatMap(marksOf), (mark) => mark.partition);
    this.clients = carried.clients.map(withWaiting);
    this.applications = applicationsOf(carried);
    /** In the order of their names, those of internal topics last. */
    this.partitions = model
      .partitionNames(true)
      .flatMap((name) => model.partitions.get(name) ?? [])
      .filter(({ leaders, series }) => leaders.length || series.size);
    const told = [...this.windows, ...this.anomalies, ...model.notes.filter(isTruncation)];
    this.changed = new Set([...told.map(nameOf), ...this.marks.keys()]);
    for (const { name, leaders } of this.partitions) {
      if (leaders.some(({ at }) => at > this.run.began)) this.changed.add(name);
    }
  }

  /** @param {string} lane */
  notesOf(lane) {
    return this.lanes.get(lane) ?? [];
  }

  /** @param {number} id */
  placeOf(id) {
    return this.brokers.findIndex((broker) => broker.id === id);
  }

  /** @param {WindowValues} values */
  #window(values) {
    const { kind, from_ms: from, to_ms: to, is_over: isOver, clients, errors, reasons } = values;
    const name = values.partition.join("-");
    return {
      kind,
      partition: name,
      from,
      to,
      isOver,
      clients,
      errors,
      chain: this.#chain(reasons, name),
    };
  }

  /** @param {AnomalyValues} values */
  #anomaly(values) {
    const { name, text, count, allowed, chain } = values;
    const partition = values.partition.join("-");
    const at = values.at_ms >= 0 ? values.at_ms : this.run.began;
    return {
      name,
      partition,
      text: shorter(text),
      count,
      allowed,
      at,
      chain: this.#chain(chain, partition),
    };
  }

  /**
   * @param {LinkValues[]} links
   * @param {string} partition where a link without an event stands
   * @returns {ChainLink[]}
   */
  #chain(links, partition) {
    return links.map(({ at_ms: at, text, note_id: id }) => {
      const note = (id && this.model.noteById.get(String(id))) || null;
      return { at, text: shorter(text), note, lane: note?.lane || `p:${partition}` };
    });
  }
}

/** @param {Note} note */
const isTruncation = (note) => note.kind === "log_truncated";

/** @param {Window | Anomaly | Note} found */
const nameOf = (found) => ("event" in found ? found.subject : found.partition);

/**
 * Text without the padding of records, for which workloads use dots.
 *
 * @param {string} text
 */
const shorter = (text) => text.replace(/\.{6,}/g, "…");

/**
 * Rows as spans: each lasts until the next, the last until `end`.  Equal neighbours are one; of rows
 * of the same ms the last counts.
 *
 * @template {{ at: number }} Row
 * @template What
 * @param {readonly Row[]} rows
 * @param {number} end
 * @param {(row: Row) => What} whatOf
 * @param {(a: What, b: What) => boolean} same
 */
export function spansOf(rows, end, whatOf, same = (a, b) => a === b) {
  /** @type {{ from: number, to: number, what: What, row: Row }[]} */
  const spans = [];
  for (const [place, row] of rows.entries()) {
    const what = whatOf(row);
    const to = rows[place + 1]?.at ?? end;
    if (to === row.at) continue;
    const last = spans.at(-1);
    if (last && same(last.what, what)) last.to = to;
    else spans.push({ from: row.at, to, what, row });
  }
  return spans;
}

// -------------------------------------------------------------------------------------- brokers

/**
 * @param {Model} model
 * @param {Carried["run"]} run
 * @returns {BrokerFacts[]}
 */
function brokersOf(model, run) {
  const racks = new Map(run.brokers.map(({ id, rack }) => [id, rack]));
  const ids = new Set([...racks.keys(), ...model.brokers.keys()]);
  ids.delete(model.controllerNode);
  return [...ids]
    .sort((a, b) => a - b)
    .map((id) => {
      const { process, fenced } = model.broker(id);
      return {
        id,
        rack: racks.get(id) ?? "",
        states: shownSpans(process, run.end, stateWords),
        fenced: shownSpans(fenced, run.end, (row) => (row.fenced ? "fenced" : "")),
        cuts: shownSpans(cutsOf(model, id, ids.size), run.end, (row) => row.words),
      };
    });
}

/**
 * Spans with words; those without words, or without a length, are left out.
 *
 * @template {{ at: number, note: Note | null }} Row
 * @param {Row[]} rows
 * @param {number} end
 * @param {(row: Row) => string} words
 * @returns {SpanOf[]}
 */
const shownSpans = (rows, end, words) =>
  spansOf(rows, end, (row) => row)
    .map(({ from, to, row }) => ({ from, to, what: words(row), note: row.note }))
    .filter(({ from, to, what }) => what && to > from);

/**
 * The nodes that a broker cannot reach, or that cannot reach it, each time that they change.
 *
 * @param {Model} model
 * @param {number} id
 * @param {number} brokers how many there are
 */
function cutsOf(model, id, brokers) {
  const links = [...model.links.values()].filter(
    ({ source, destination }) => source === id || destination === id,
  );
  const changes = Map.groupBy(
    links.flatMap(({ cuts }) => cuts),
    ({ at }) => at,
  );
  return [...changes]
    .sort(([a], [b]) => a - b)
    .map(([at, [{ note }]]) => {
      const lost = links.filter((link) => model.linkAt(link.source, link.destination, at).cut);
      const to = lost.filter(({ source }) => source === id).map((link) => link.destination);
      const back = lost.filter(({ source }) => source !== id).map((link) => link.source);
      return { at, words: cutWords(to, back, brokers), note: summaryOf(model, note) };
    });
}

/**
 * The event that cut or healed a set of links, of which this event is one.
 *
 * @param {Model} model
 * @param {Note} note
 */
function summaryOf(model, note) {
  const isSummary = (/** @type {Note} */ each) =>
    each.kind === "network_cut" || each.kind === "network_healed";
  for (let i = lastAt(model.notes, note.at); model.notes[i]?.at === note.at; i--) {
    if (isSummary(model.notes[i])) return model.notes[i];
  }
  return note;
}

/**
 * `cut off from`: the controller or most brokers; `no link with`: fewer brokers.
 *
 * @param {number[]} to the nodes that it cannot reach
 * @param {number[]} back the nodes that cannot reach it
 * @param {number} brokers how many there are
 */
function cutWords(to, back, brokers) {
  const both = to.filter((node) => back.includes(node));
  const peers = both.filter((node) => node < CONTROLLER).length;
  const isOff = both.includes(CONTROLLER) || 2 * peers > brokers - 1;
  /** @type {[string, number[]][]} */
  const parts = [
    [isOff ? "cut off from" : "no link with", both],
    ["cannot reach", to.filter((node) => !back.includes(node))],
    ["unreachable from", back.filter((node) => !to.includes(node))],
  ];
  return parts
    .filter(([, nodes]) => nodes.length)
    .map(([words, nodes]) => `${words} ${nodeWords(nodes)}`)
    .join("; ");
}

/**
 * `broker 1, controller, 2 clients`.
 *
 * @param {number[]} nodes
 */
function nodeWords(nodes) {
  const brokers = nodes.filter((node) => node < CONTROLLER).sort((a, b) => a - b);
  const clients = nodes.filter((node) => node > CONTROLLER).length;
  return [
    ...brokers.map((node) => `broker ${node}`),
    ...(nodes.includes(CONTROLLER) ? ["controller"] : []),
    ...(clients ? [`${clients} client${clients > 1 ? "s" : ""}`] : []),
  ].join(", ");
}

// ------------------------------------------------------------------- clients and the application

/**
 * A client, and how many of its records are in flight: those sent minus those that ended.
 *
 * @param {Carried["clients"][number]} client
 * @returns {ClientFacts}
 */
function withWaiting(client) {
  /** @type {(rows: number[][], count: (row: number[]) => number) => { at: number, sum: number }[]} */
  const sums = (rows, count) => {
    let sum = 0;
    return rows.map((row) => {
      sum += count(row);
      return { at: row[0], sum };
    });
  };
  const made = () => ({
    sent: sums(client.sent, (row) => row[1]),
    ended: sums(client.ended, (row) => row[1] + row[2] + row[3]),
  });
  /** @type {ReturnType<typeof made> | null} made when the client is first painted */
  let kept = null;
  const sumAt = (/** @type {{ at: number, sum: number }[]} */ rows, /** @type {number} */ at) =>
    rows[lastAt(rows, at)]?.sum ?? 0;
  return {
    ...client,
    waiting(at) {
      kept ??= made();
      return sumAt(kept.sent, at) - sumAt(kept.ended, at);
    },
  };
}

/**
 * The topics of which processing was reported, or problems found.
 *
 * @param {Carried} carried
 * @returns {ApplicationFacts[]}
 */
function applicationsOf({ processed, problems, commits }) {
  const topics = new Set([...Object.keys(processed), ...problems.map(({ topic }) => topic)]);
  const {
    at_ms: times = [],
    topic: named = [],
    group: groups = [],
    error: errors = [],
    partition: numbers = [],
    offset: offsets = [],
  } = commits;
  return [...topics].sort().map((topic) => {
    /** @type {Map<string, ApplicationFacts["commits"][number]>} */
    const found = new Map();
    for (const [i, at] of times.entries()) {
      if (named[i] !== topic) continue;
      const [group, error] = [groups[i], errors[i]];
      const key = `${at} ${error} ${group}`;
      const commit = found.get(key) ?? { at, group, error, offsets: [] };
      commit.offsets.push(`${topic}-${numbers[i]}: ${offsets[i]}`);
      found.set(key, commit);
    }
    return {
      topic,
      processed: processed[topic] ?? [],
      commits: [...found.values()],
      problems: problemWords(problems.filter((problem) => problem.topic === topic)),
    };
  });
}

/**
 * Where a problem's records stand in the log: none if their appends were not recorded.
 *
 * @param {Problem} problem
 * @returns {Mark[]}
 */
const marksOf = ({ problem, topic, partition, first, last, text, from_ms: from, to_ms: to }) =>
  from === null || to === null
    ? []
    : [
        {
          partition: `${topic}-${partition}`,
          isMissed: problem === "missed",
          first,
          from,
          last,
          to,
          text,
        },
      ];
