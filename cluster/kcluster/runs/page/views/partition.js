// @ts-check
// The view of a partition: the log of each replica, and its clients.

import { button, h } from "../dom.js";
import { epochFill } from "../epochs.js";
import { crown, laneWidth, logTree, MARK_PX, scaleOf } from "../log.js";
import { lastAt } from "../model.js";
import { moment } from "../moment.js";
import { offsetWords, partitionAt, replicaWords } from "../replicas.js";
import { registerView } from "../views.js";
import { number } from "../words.js";

/** @import { Partition } from "../model.js" */
/** @import { Page } from "../page.js" */
/** @import { Client, PartitionAt, ReplicaAt, Scale, Tree } from "../types.js" */

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
  if (!partition) return [h("p", { class: "dim" }, "There is no topic yet.")];
  const shown = partitionAt(model, partition, at);
  if (!shown.registration)
    return [h("p", { class: "dim" }, `${partition.name} does not exist yet.`)];
  if (shown.registration.deleted)
    return [h("p", { class: "dim" }, `${partition.name} is deleted.`)];
  const { registration } = shown;
  const scale = scaleOf(shown.replicas, Math.max(laneWidth(width), 160));
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
      axisTree(scale, width),
      shown.replicas.map((each) => replicaTree(page, partition, shown, each, scale, width)),
    ),
    clientsLine(page, partition, "consumers"),
    legendTree(epochs.slice(-6)),
  ];
}

/**
 * @param {Scale} scale
 * @param {number} width
 */
function axisTree(scale, width) {
  const every = scale.cell >= 22 ? 1 : scale.cell >= 13 ? 2 : 5;
  const ticks = [];
  for (
    let offset = scale.first;
    offset < scale.first + Math.round((laneWidth(width) - MARK_PX - scale.runs) / scale.cell);
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
      { width: laneWidth(width), height: 18, "aria-hidden": "true" },
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
 * @param {number} width
 */
function replicaTree(page, partition, shown, replica, scale, width) {
  const { broker, standing, process } = replica;
  const words = replicaWords(replica, shown.leader),
    { leader } = shown;
  const spoken = [...words, ...offsetWords(replica, leader, true)].join(", ");
  return h(
    "div",
    { key: broker, class: `replica ${process.state} ${standing}` },
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
      h("span", { class: `ring ${standing}`, "data-flight": `b${broker}` }, String(broker)),
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
    logTree(page, partition, shown, replica, scale, width),
  );
}

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
    if (!exchange || at - exchange.at > 30_000) continue;
    const position =
      side === "consumers" && exchange.last >= 0 ? ` at ${number(exchange.last + 1)}` : "";
    const error = exchange.answered_ms >= 0 && exchange.answered_ms <= at ? exchange.error : "";
    found.push(
      h(
        "button",
        {
          key: client.name,
          type: "button",
          class: `client${error ? " refused" : ""}`,
          "data-flight": `c${client.name}`,
          onclick: () => page.showClient(client.name),
        },
        h("b", null, client.name),
        position,
        error ? h("span", { class: "bad-text" }, ` ${error}`) : null,
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
    if (row.api === api && row.topic === partition.topic && row.partition === partition.number)
      return row;
  }
  return null;
}

/** @param {number[]} epochs */
function legendTree(epochs) {
  /**
   * @param {Tree} drawing
   * @param {string} text
   * @param {string | number} key
   */
  const swatch = (drawing, text, key) =>
    h(
      "span",
      { key, class: "entry" },
      h("svg", { width: 24, height: 16, "aria-hidden": "true" }, drawing),
      text,
    );
  return h(
    "p",
    { class: "legend" },
    epochs.map((epoch) =>
      swatch(
        h("rect", { width: 22, height: 14, y: 1, fill: epochFill(epoch) }),
        `epoch ${epoch}`,
        epoch,
      ),
    ),
    swatch(h("path", { class: "mark", d: "M12 0V16m-4 0h8" }), "high watermark", "mark"),
    swatch(h("path", { class: "stable", d: "M12 0V16" }), "last stable offset", "stable"),
    swatch(
      h("rect", {
        width: 22,
        height: 14,
        y: 1,
        class: "cell open",
        fill: epochFill(epochs[0] ?? 0),
      }),
      "not committed",
      "open",
    ),
    swatch(
      h("rect", {
        width: 21,
        height: 13,
        x: 1,
        y: 1,
        class: "cell gone",
        fill: epochFill(epochs[0] ?? 0),
      }),
      "not in the leader's log",
      "gone",
    ),
    h("span", { class: "entry" }, h("span", { class: "ring isr tiny" }), "in sync"),
    h("span", { class: "entry" }, h("span", { class: "ring elr tiny" }), "eligible (ELR)"),
  );
}
