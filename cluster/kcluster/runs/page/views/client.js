// @ts-check
// The view of a client: what it believes about leaders, and its requests and answers as a ladder.

import { button, h, tableHead } from "../dom.js";
import { lastAt, rowAt } from "../model.js";
import { moment } from "../moment.js";
import { cardsOf, registerView } from "../views.js";
import { clock, number, processWords } from "../words.js";

/** @import { Page } from "../page.js" */
/** @import { Client, Rung } from "../types.js" */

registerView("client", moment(clientView));

const LEAST_RUNGS = 6;
const RUNG_PX = 46;
/** The most that a letter of its words takes, and of an error. */
const LETTER_PX = 7;
const STRONG_PX = 9.5;

/**
 * @param {Page} page
 * @param {number} width
 */
function clientView(page, width) {
  const { model } = page;
  const names = [...model.clients.keys()].sort();
  if (!names.length)
    return [
      h("h2", null, "Clients"),
      h("p", { class: "dim" }, "No client has asked anything yet."),
    ];
  const name = names.includes(page.client) ? page.client : names[0];
  const client = model.client(name);
  return [
    h("h2", null, "Client ", h("b", null, name)),
    h(
      "div",
      { class: "clients", role: "group", "aria-label": "Clients by client.id" },
      names.slice(0, 40).map((each) =>
        button(each, () => page.showClient(each), {
          key: each,
          class: "client",
          "aria-pressed": String(each === name),
        }),
      ),
      names.length > 40 ? h("span", { class: "dim" }, `and ${names.length - 40} more`) : null,
    ),
    cardsOf(page, name),
    beliefsTree(page, client),
    h("h3", null, "Requests and answers"),
    ladderTree(page, client, width),
  ];
}

/**
 * What the newest answers told the client, beside what is true.
 *
 * @param {Page} page
 * @param {Client} client
 */
function beliefsTree(page, client) {
  const { model, at } = page;
  const rows = [];
  for (const [name, beliefs] of client.beliefs) {
    const belief = rowAt(beliefs, at);
    const partition = model.partitions.get(name);
    if (!belief || !partition || (partition.internal && !page.internal)) continue;
    const truth = model.registrationAt(partition, at);
    const isStale = truth && (belief.leader !== truth.leader || belief.leader_epoch < truth.epoch);
    rows.push(
      h(
        "tr",
        { key: name, class: isStale ? "stale" : "" },
        h("th", { scope: "row" }, name),
        h(
          "td",
          null,
          belief.leader < 0 ? "none" : `broker ${belief.leader}`,
          ` · epoch ${belief.leader_epoch}`,
        ),
        h(
          "td",
          null,
          truth
            ? [truth.leader < 0 ? "none" : `broker ${truth.leader}`, ` · epoch ${truth.epoch}`]
            : "unknown",
        ),
        h(
          "td",
          null,
          isStale ? h("b", { class: "bad-text" }, "✗ stale") : "✓ current",
          h("span", { class: "dim" }, ` as of ${clock(belief.at, page.began)}`),
        ),
      ),
    );
  }
  if (!rows.length) return h("p", { class: "dim" }, "It has asked for no metadata yet.");
  return h(
    "table",
    null,
    tableHead("partition", "it believes", "in truth", ""),
    h("tbody", null, rows.slice(0, 24)),
  );
}

/**
 * The newest exchanges up to a time, alike ones in a row folded, oldest first.
 *
 * @param {Client} client
 * @param {number} at
 * @param {number} most
 * @returns {Rung[]}
 */
function foldedExchanges(client, at, most) {
  /** @type {Rung[]} */
  const rungs = [];
  for (let i = lastAt(client.exchanges, at); i >= 0 && rungs.length <= most; i--) {
    const row = client.exchanges[i];
    const answered = row.answered_ms >= 0 && row.answered_ms <= at;
    const error = answered ? row.error : "";
    const above = rungs.at(-1);
    const isAlike =
      above &&
      above.row.api === row.api &&
      above.row.broker === row.broker &&
      above.error === error &&
      above.answered === answered &&
      above.row.topic === row.topic &&
      above.row.partition === row.partition;
    const times = row.times ?? 1;
    if (isAlike) above.count += times;
    else rungs.push({ row, answered, error, count: times });
  }
  return rungs.slice(0, most).reverse();
}

/**
 * @param {Page} page
 * @param {Client} client
 * @param {number} width
 */
function ladderTree(page, client, width) {
  const most = Math.max(LEAST_RUNGS, Math.floor((page.height - 260) / RUNG_PX));
  const rungs = foldedExchanges(client, page.at, most);
  const brokers = [...new Set(rungs.map(({ row }) => row.broker))].sort((a, b) => a - b);
  const left = 96,
    wide = Math.max(width, 420);
  const step = (wide - left - 70) / Math.max(brokers.length, 1);
  /** @param {number} broker */
  const x = (broker) => left + step * (brokers.indexOf(broker) + 1);
  const tall = 44 + rungs.length * RUNG_PX;
  /**
   * @param {string} key
   * @param {number} at
   * @param {string} text
   * @param {string} sub
   */
  const line = (key, at, text, sub) =>
    h(
      "g",
      { key },
      h("path", { class: "life", d: `M${at} 34V${tall}` }),
      h("text", { x: at, y: 14, "text-anchor": "middle", class: "strong" }, text),
      h("text", { x: at, y: 28, "text-anchor": "middle", class: "dim" }, sub),
    );
  /** @param {number} broker */
  const state = (broker) => processWords(page.model.processAt(broker, page.at));
  return h(
    "div",
    { class: "scrolls", tabindex: 0, role: "group", "aria-label": "Ladder of requests" },
    h(
      "svg",
      { width: wide, height: tall + 8, class: "ladder" },
      line("client", left, client.name, ""),
      brokers.map((broker) => line(`b${broker}`, x(broker), `broker ${broker}`, state(broker))),
      rungs.map((rung, index) => rungTree(page, rung, index, left, x(rung.row.broker))),
    ),
  );
}

/**
 * @param {Page} page
 * @param {Rung} rung
 * @param {number} index
 * @param {number} left
 * @param {number} right
 */
function rungTree(page, { row, answered, error, count }, index, left, right) {
  const y = 56 + index * RUNG_PX,
    down = 13;
  const about = row.topic
    ? ` ${row.topic}-${row.partition}${row.partitions > 1 ? ` and ${row.partitions - 1} more` : ""}`
    : "";
  const times = count > 1 ? ` ×${number(count)}` : "";
  const offsets =
    row.first >= 0 && row.last >= row.first
      ? row.first === row.last
        ? ` [${row.first}]`
        : ` [${row.first}–${row.last}]`
      : "";
  const hint = error && row.leader >= 0 ? `, leader is ${row.leader}` : "";
  const words = answered ? (error ? `${error}${hint}` : "") : "no answer";
  const what = `${row.api}${about}${offsets}${times}`;
  // Words that are wider than their arrow begin at the client's line, right of the time.
  const placed = (/** @type {string} */ text, /** @type {number} */ letter) =>
    text.length * letter < right - left
      ? { x: (left + right) / 2, "text-anchor": "middle" }
      : { x: left + 5, "text-anchor": "start" };
  return h(
    "g",
    {
      key: `${row.at} ${row.api} ${row.broker} ${index}`,
      class: `rung${error ? " refused" : ""}${answered ? "" : " lost"}`,
    },
    h(
      "text",
      { x: left - 8, y: y + 3, "text-anchor": "end", class: "dim" },
      clock(row.at, page.began),
    ),
    h("path", { class: "ask", d: `M${left} ${y}L${right} ${y + down / 2}m-7 -4l7 4l-8 3` }),
    answered
      ? h("path", {
          class: "answer",
          d: `M${right} ${y + down / 2 + 1}L${left} ${y + down}m8 -4l-8 4l7 3`,
        })
      : h("path", { class: "cross", d: `M${right - 16} ${y - 2}l10 10m0 -10l-10 10` }),
    h("text", { ...placed(what, LETTER_PX), y: y - 3 }, what),
    words
      ? h(
          "text",
          { ...placed(words, STRONG_PX), y: y + down + 14, class: "bad-text strong" },
          words,
        )
      : null,
  );
}
