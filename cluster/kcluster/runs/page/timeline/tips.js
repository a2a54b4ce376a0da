// @ts-check
// Tooltips: what they say, and the elements that say it.

import { h } from "../dom.js";
import { offsetWords, partitionAt, replicaWords } from "../replicas.js";
import { clock, lasting } from "../words.js";
import { moodColour } from "./canvas.js";

/** @import { Partition } from "../model.js" */
/** @import { Facts } from "./facts.js" */
/** @import { BrokerFacts, ChainLink, Line, Note, SpanOf, Tree, Window } from "../types.js" */

const MAX_CAUSES = 5;
const MAX_LED = 8;

/** @param {number[]} ids */
const set = (ids) => `{${ids.join(", ")}}`;

/**
 * A moment of the run.
 *
 * @param {Facts} facts
 * @param {number} at
 */
export const stamp = (facts, at) => h("time", null, clock(at, facts.run.began));

/** @param {Note} note */
export const dot = (note) =>
  h("span", { class: "dot", style: `background:${moodColour(note.mood)}` });

/**
 * The elements of lines.
 *
 * @param {Facts} facts
 * @param {Line[]} lines
 * @returns {Tree[]}
 */
export const lineTrees = (facts, lines) =>
  lines.map((line, key) => {
    if (typeof line === "string") return h("div", { key }, line);
    if ("text" in line) return h("div", { key, class: `${line.mood}-text` }, line.text);
    const at = line.at === undefined ? null : stamp(facts, line.at);
    return h("div", { key, class: "because" }, at, line.why);
  });

/**
 * An event, and below it the chain of its causes.
 *
 * @param {Facts} facts
 * @param {Note} note
 */
export const noteTree = (facts, note) =>
  h(
    "div",
    { key: note.id, class: "note" },
    h("div", null, dot(note), stamp(facts, note.at), `${note.subject}: ${note.text}`),
    facts.model
      .causesOf(note)
      .slice(1)
      .map((cause) =>
        h(
          "div",
          { key: cause.id, class: "because" },
          "because ",
          stamp(facts, cause.at),
          `${cause.subject}: ${cause.text}`,
        ),
      ),
  );

/**
 * The first links of a chain.
 *
 * @param {ChainLink[]} chain
 * @returns {Line[]}
 */
export function causeLines(chain) {
  const more = chain.length - MAX_CAUSES;
  return [
    ...chain.slice(0, MAX_CAUSES).map(({ at, text }) => ({ at, why: text })),
    ...(more > 0 ? [{ why: `and ${more} more: click to see all` }] : []),
  ];
}

/**
 * @param {Facts} facts
 * @param {Window} found
 */
export function windowLine({ run }, found) {
  const errors = found.errors.length ? ` (${found.errors.join(", ")})` : "";
  const until = found.isOver ? "" : ", to the end of the run";
  return (
    `no ${found.kind} for ${lasting(found.to - found.from)} from ${clock(found.from, run.began)}` +
    `${until}${errors}: ${found.clients.join(", ")}`
  );
}

// ---------------------------------------------------------------------------------------- lanes

/**
 * @param {Facts} facts
 * @param {BrokerFacts} broker
 * @param {number} at
 * @returns {Line[]}
 */
export function brokerLines(facts, broker, at) {
  const { run, model, partitions } = facts;
  const line = (/** @type {SpanOf} */ { from, to, what, note }) => {
    const until = to >= run.end ? "to the end of the run" : `until ${clock(to, run.began)}`;
    const because = note ? `: ${note.text}` : "";
    return `${what}, since ${clock(from, run.began)} ${until}${because}`;
  };
  const now = [broker.states, broker.fenced, broker.cuts].map((spans) =>
    spans.find(({ from, to }) => from <= at && (at < to || to >= run.end)),
  );
  const led = partitions.filter(
    (each) => !each.internal && model.registrationAt(each, at)?.leader === broker.id,
  );
  const names = led.slice(0, MAX_LED).map(({ name }) => name);
  if (led.length > MAX_LED) names.push(`${led.length - MAX_LED} more`);
  return [
    ...(now[0] ? [] : ["does not exist yet"]),
    ...now.flatMap((span) => (span ? [line(span)] : [])),
    led.length ? `leads ${names.join(", ")}` : "leads no partition",
  ];
}

/**
 * @param {Facts} facts
 * @param {Partition} partition
 * @param {Window[]} windows
 * @param {number} at
 * @returns {Line[]}
 */
export function partitionLines(facts, partition, windows, at) {
  const { registration, replicas, leader } = partitionAt(facts.model, partition, at);
  if (!registration) return ["does not exist yet"];
  if (registration.deleted) return ["deleted with its topic"];
  const { isr, elr, epoch } = registration;
  const inElr = elr.length ? `, ELR ${set(elr)}` : "";
  return [
    registration.leader < 0 ? "no leader" : `leader ${registration.leader}, epoch ${epoch}`,
    `ISR ${set(isr)}${inElr}, replicas ${set(registration.replicas)}`,
    ...replicas.map((each) => {
      const words = replicaWords(each, leader).join(", ");
      return `broker ${each.broker}, ${words}: ${offsetWords(each, leader, true).join(", ")}`;
    }),
    ...windows
      .filter(({ from, to }) => from <= at && at <= to)
      .flatMap((found) => [
        { mood: found.kind === "writes" ? "bad" : "warn", text: windowLine(facts, found) },
        ...causeLines(found.chain),
      ]),
  ];
}
