// @ts-check
// One record: who sent it, who has it, who was answered, who read it.

import { button, h } from "./dom.js";
import { epochAt, partitionAt } from "./replicas.js";
import { clock, number } from "./words.js";

/** @import { Page } from "./page.js" */
/** @import { Chosen, ExchangeRow, Inside, Tree } from "./types.js" */

/**
 * What is known about a record: who sent it, who has it, who was answered, who read it.
 *
 * @param {Page} page
 * @param {Chosen} chosen
 */
export function recordTree(page, chosen) {
  const { model, at, began } = page;
  const { partition, offset, epoch } = chosen;
  const { registration, replicas } = partitionAt(model, partition, at);
  const batch = epoch === null ? null : model.batchOf(partition, offset, epoch);
  /** @type {[string, ExchangeRow][]} */
  const answers = [];
  /** @type {Map<string, ExchangeRow>} */
  const readers = new Map();
  for (const client of model.clients.values()) {
    for (const row of client.exchanges) {
      if (row.at > at) break;
      if (row.topic !== partition.topic || row.partition !== partition.number) continue;
      if (row.first < 0 || row.first > offset || row.last < offset) continue;
      if (row.answered_ms < 0 || row.answered_ms > at) continue;
      if (row.api === "Produce" && (!batch || row.broker === batch.broker))
        answers.push([client.name, row]);
      if (row.api === "Fetch" && !readers.has(client.name)) readers.set(client.name, row);
    }
  }
  /** @type {Tree[]} */
  const lines = [];
  /** @type {(term: string, ...text: Inside[]) => number} */
  const line = (term, ...text) =>
    lines.push(h("dt", { key: term }, term), h("dd", { key: `${term}.` }, text));
  if (batch) {
    const sender = answers.find(([, row]) => !row.error)?.[0] ?? batch.client;
    line("Sent by", sender || "unknown", `, at ${clock(batch.at, began)}`);
    line("Batch", `offsets ${batch.base} to ${batch.last}, appended by broker ${batch.broker}`);
    line("ISR then", `{${batch.isr.join(", ")}}`);
  }
  line("Epoch", epoch === null ? "unknown" : `${epoch}`);
  /** @type {[number[], number[], number[]]} */
  const [has, lacks, other] = [[], [], []];
  for (const each of replicas) {
    const own = offset < each.end && offset >= each.start ? epochAt(each.runs, offset) : null;
    (offset >= each.end || offset < each.start ? lacks : own === epoch ? has : other).push(
      each.broker,
    );
  }
  line("Has it", has.length ? brokersText(has) : "nobody");
  if (lacks.length) line("Lacks it", brokersText(lacks));
  if (other.length) line("Has another record there", brokersText(other));
  const leader = replicas.find((each) => each.broker === registration?.leader);
  const isCommitted = leader && has.includes(leader.broker) && offset < leader.mark;
  line("Committed", isCommitted ? "yes: below the high watermark" : "no");
  line(
    "Acked",
    answers.length
      ? answers
          .slice(0, 3)
          .map(
            ([name, row]) =>
              `to ${name} at ${clock(row.answered_ms, began)}${row.error ? `: ${row.error}` : ""} `,
          )
      : "no answer seen",
  );
  line(
    "Read by",
    readers.size
      ? [...readers]
          .slice(0, 6)
          .map(([name, row]) => `${name} at ${clock(row.answered_ms, began)} `)
      : "nobody seen",
  );
  return h(
    "section",
    { key: "record", class: "card", "aria-label": "Record" },
    button("×", () => page.select(null), { class: "close", "aria-label": "Close the record" }),
    h("h2", null, `Record ${number(offset)} of ${partition.name}`),
    h("dl", null, lines),
  );
}

/** @param {number[]} ids */
const brokersText = (ids) => `broker${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
