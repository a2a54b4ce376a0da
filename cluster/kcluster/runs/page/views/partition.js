// @ts-check
// The view of a partition: the log of each replica, and its clients.

import { button, h } from "../dom.js";
import { fallingTree, truncationsAt } from "../falling.js";
import { firstComing } from "../journeys.js";
import { momentLegend } from "../legend.js";
import { crown, isRacing, laneWidth, logTree, MARK_PX, scaleOf, WIRE_ROOM_PX } from "../log.js";
import { lastAt } from "../model.js";
import { moment } from "../moment.js";
import { offsetWords, partitionAt, replicaWords } from "../replicas.js";
import { sessionRing } from "../sessions.js";
import { registerView } from "../views.js";
import { waitingTree } from "../waiting.js";
import { number } from "../words.js";

/** @import { Partition } from "../model.js" */
/** @import { Page } from "../page.js" */
/** @import { Client, Fall, PartitionAt, ReplicaAt, Scale } from "../types.js" */

registerView("partition", moment(partitionTree));

/**
 * The tree of the view.  `page`: model, at, began, selected, act (callbacks).
 *
 * @param {Page} page
 * @param {number} width
 */
function partitionTree(page, width) {
  const { model, at } = page;
  const partition = page.shownPartition;
  if (!partition)
    return page.controls && !page.time.isComplete
      ? page.controls.first()
      : [h("p", { class: "dim" }, "There is no topic yet.")];
  const shown = partitionAt(model, partition, at);
  if (!shown.registration)
    return [h("p", { class: "dim" }, `${partition.name} does not exist yet.`)];
  if (shown.registration.deleted)
    return [h("p", { class: "dim" }, `${partition.name} is deleted.`)];
  const { registration } = shown;
  const lane = Math.max(laneWidth(width, WIRE_ROOM_PX), 160);
  const scale = scaleOf(shown.replicas, lane);
  const tall = laneHeight(page, shown.replicas.length);
  const size = { lane, tall, isFast: isRacing(partition, scale) };
  const falls = truncationsAt(model, partition, at, page.time.pace);
  const epochs = [...new Set(shown.replicas.flatMap((each) => each.runs.map(([epoch]) => epoch)))];
  return [
    h(
      "h2",
      null,
      partition.name,
      " ",
      h(
        "small",
        null,
        registration.leader < 0
          ? h("b", { class: "bad-text" }, "no leader")
          : `leader ${registration.leader}, epoch ${registration.epoch}`,
        ` · ISR {${registration.isr.join(", ")}}`,
        registration.elr.length ? ` · ELR {${registration.elr.join(", ")}}` : "",
        " ",
        page.readOnly
          ? null
          : button("Move leader…", (event) => page.controls?.partitionMenu(event, partition), {
              class: "small",
              "aria-haspopup": "menu",
            }),
      ),
    ),
    clientsLine(page, partition, "producers"),
    h(
      "div",
      { class: "replicas" },
      axisTree(scale, lane),
      shown.replicas.map((each) => {
        const fall = falls.find((found) => found.broker === each.broker);
        return replicaTree(page, partition, shown, each, scale, size, fall);
      }),
    ),
    clientsLine(page, partition, "consumers"),
    momentLegend(epochs.slice(-6)),
  ];
}

/** What stands above and below the logs besides the legend: title, clients, axis. */
const AROUND_PX = 158;
/** With large text the legend is below what is seen first. */
const AROUND_LARGE_PX = 240;
const LEAST_PX = 46;
const MOST_PX = 220;

/**
 * The height of a log: the logs take the height that there is.
 *
 * @param {Page} page
 * @param {number} count
 */
function laneHeight(page, count) {
  if (!page.height || innerWidth <= 760) return count > 4 ? LEAST_PX : 64;
  const isLarge = document.body.classList.contains("projector");
  const around = isLarge ? AROUND_LARGE_PX : AROUND_PX + page.legendHeight;
  return Math.round(Math.min(Math.max((page.height - around) / count - 6, LEAST_PX), MOST_PX));
}

/**
 * @param {Scale} scale
 * @param {number} lane
 */
function axisTree(scale, lane) {
  const every = scale.cell >= 22 ? 1 : scale.cell >= 13 ? 2 : 5;
  const ticks = [];
  for (
    let offset = scale.first;
    offset < scale.first + Math.round((lane - MARK_PX - scale.runs) / scale.cell);
    offset++
  ) {
    const step = number(scale.end).length > 4 ? 5 * every : every;
    if (offset % step) continue;
    ticks.push(
      h(
        "text",
        { key: offset, x: scale.x(offset) + scale.cell / 2, y: 13, "text-anchor": "middle" },
        String(offset),
      ),
    );
  }
  return h(
    "div",
    { key: "axis", class: "replica axis" },
    h("span", { class: "label dim" }, "offset"),
    h(
      "svg",
      { width: lane, height: 18, "aria-hidden": "true" },
      scale.runs ? h("text", { key: "before", x: 2, y: 13 }, `${number(scale.start)} …`) : null,
      ticks,
    ),
  );
}

/**
 * One replica: who it is, and its log.
 *
 * @param {Page} page
 * @param {Partition} partition
 * @param {PartitionAt} shown
 * @param {ReplicaAt} replica
 * @param {Scale} scale
 * @param {{ lane: number, tall: number, isFast: boolean }} size
 * @param {Fall | undefined} fall
 */
function replicaTree(page, partition, shown, replica, scale, size, fall) {
  const { broker, standing, process } = replica;
  const words = replicaWords(replica, shown.leader),
    { leader } = shown;
  const spoken = [...words, ...offsetWords(replica, leader, true)].join(", ");
  const { at, model, time } = page;
  const coming =
    replica === leader ? Infinity : firstComing(model, partition, broker, at, time.pace);
  // A few records wait for the answer that brings them; of a stream of records, nothing waits.
  const held = replica.end - coming <= MAX_HELD ? coming : Infinity;
  return h(
    "div",
    {
      key: broker,
      class: `replica ${process.state} ${standing}${replica.fenced ? " fenced" : ""}`,
    },
    h(
      "button",
      {
        type: "button",
        class: "label",
        "data-broker": broker,
        disabled: page.readOnly === true,
        "aria-haspopup": "menu",
        "aria-label": `Broker ${broker}: ${spoken}. Actions`,
        onclick: (event) => page.controls?.brokerMenu(event, broker),
      },
      h(
        "span",
        { class: `ring ${standing}` },
        sessionRing(model, broker, at),
        h("span", null, String(broker)),
      ),
      standing === "leader" ? crown() : null,
      h(
        "span",
        { class: "words" },
        h("b", null, words[0]),
        words.slice(1).map((each) => `, ${each}`),
        h("br"),
        offsetWords(replica, leader).join(" · "),
      ),
    ),
    h(
      "div",
      { class: "lane" },
      logTree(page, partition, shown, replica, scale, { ...size, coming: held }),
      fall ? fallingTree(fall, scale, size) : null,
    ),
  );
}

/** The most records of a follower that are drawn only once their answer has arrived. */
const MAX_HELD = 3;

/**
 * Who produces to the partition, or reads it, in the last seconds.
 *
 * @param {Page} page
 * @param {Partition} partition
 * @param {"producers" | "consumers"} side
 */
function clientsLine(page, partition, side) {
  const { model, at } = page;
  const api = side === "producers" ? "Produce" : "Fetch";
  const found = [];
  for (const client of model.clients.values()) {
    const exchange = recentExchange(client, api, partition, at);
    const waits = side === "producers" ? model.waitingAt(client.name, at, partition) : null;
    if (!waits?.count && (!exchange || at - exchange.at > 30_000)) continue;
    const position =
      side === "consumers" && exchange && exchange.last >= 0
        ? ` at ${number(exchange.last + 1)}`
        : "";
    const isAnswered = exchange && exchange.answered_ms >= 0 && exchange.answered_ms <= at;
    const error = isAnswered ? exchange.error : "";
    found.push(
      h(
        "span",
        { key: client.name, class: "clientspan", "data-flight": `c${client.name}` },
        h(
          "button",
          {
            type: "button",
            class: `client${error ? " refused" : ""}`,
            onclick: () => page.showClient(client.name),
          },
          h("b", null, client.name),
          position,
          error ? h("span", { class: "bad-text" }, ` ${error}`) : null,
        ),
        waits ? waitingTree(client.name, waits, at) : null,
      ),
    );
  }
  return h(
    "div",
    { key: side, class: "clients" },
    h("span", { class: "dim" }, side === "producers" ? "Producers" : "Consumers"),
    found.length ? found.slice(0, 12) : h("span", { class: "dim" }, "none seen lately"),
  );
}

/**
 * The newest exchange of a client about a partition, among its last hundred.
 *
 * @param {Client} client
 * @param {string} api
 * @param {Partition} partition
 * @param {number} at
 */
function recentExchange(client, api, partition, at) {
  const rows = client.exchanges;
  for (let i = lastAt(rows, at), tries = 0; i >= 0 && tries < 100; i--, tries++) {
    const row = rows[i];
    if (row.answered_ms > at) continue; // its answer is not known yet
    if (row.api === api && row.topic === partition.topic && row.partition === partition.number)
      return row;
  }
  return null;
}
