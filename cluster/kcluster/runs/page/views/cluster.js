// @ts-check
// The view of the cluster: brokers, controller and clients as nodes, links between them.
//
// Up to eight brokers stand on an ellipse with all links; more stand in a grid, and only links that
// are cut or slow are drawn.

import { button, h, onEnter } from "../dom.js";
import { lastAt } from "../model.js";
import { moment } from "../moment.js";
import { registerView } from "../views.js";
import { many, processWords } from "../words.js";

/** @import { Model } from "../model.js" */
/** @import { Page } from "../page.js" */
/** @import { Client, Lead, Place, Point } from "../types.js" */

registerView("cluster", moment(clusterView));

const CIRCLE_MAX = 8;
const MAX_CHIPS = 10;

/**
 * @param {Page} page
 * @param {number} width
 */
function clusterView(page, width) {
  const { model, at } = page;
  const ids = [...model.brokers.keys()].filter((id) => id !== model.controllerNode);
  const leads = leadersAt(model, at, page.internal);
  const place = ids.length <= CIRCLE_MAX ? ellipse(ids, width, page.height) : grid(ids, width);
  const clients = [...model.clients.values()]
    .filter((client) => lastExchange(client, at))
    .slice(0, 16);
  const controller = model.controllerAt(at);
  return [
    h("h2", null, "Cluster ", h("small", null, summary(model, leads, at))),
    h(
      "div",
      { class: "stage", style: `height:${place.height}px` },
      h(
        "svg",
        { width, height: place.height, class: "links", role: "group", "aria-label": "Links" },
        linkTrees(page, ids, place),
        clientLinks(page, clients, place, width),
      ),
      h(
        "div",
        {
          key: "controller",
          class: `node controller ${controller.state}`,
          style: `left:${place.controller.x}px;top:${place.controller.y}px`,
        },
        h("b", null, "Controller"),
        h(
          "span",
          null,
          controller.state === "up"
            ? controller.epoch === undefined
              ? "up"
              : `up, epoch ${controller.epoch}`
            : "down",
        ),
      ),
      ids.map((id) => brokerTree(page, id, place.of(id), leads.get(id) ?? [], place.wide)),
      clients.map((client, index) =>
        h(
          "button",
          {
            key: client.name,
            type: "button",
            class: "node clientnode",
            "data-flight": `c${client.name}`,
            style: `left:${clientX(index, clients.length, width)}px;top:${place.clients}px`,
            onclick: () => page.showClient(client.name),
          },
          h("b", null, client.name),
        ),
      ),
    ),
    offlineTree(page, leads.get(-1) ?? []),
  ];
}

/**
 * @param {Client} client
 * @param {number} at
 */
const lastExchange = (client, at) => client.exchanges[lastAt(client.exchanges, at)];
/**
 * @param {number} index
 * @param {number} count
 * @param {number} width
 */
const clientX = (index, count, width) => ((index + 0.5) * width) / count;

/**
 * Partitions by leader at a time; -1 for those without.
 *
 * @param {Model} model
 * @param {number} at
 * @param {boolean} withInternal
 * @returns {Map<number, Lead[]>}
 */
function leadersAt(model, at, withInternal) {
  /** @type {Map<number, Lead[]>} */
  const leads = new Map();
  for (const partition of model.partitions.values()) {
    if (partition.internal && !withInternal) continue;
    const registration = model.registrationAt(partition, at);
    if (!registration || registration.deleted) continue;
    const list = leads.get(registration.leader);
    const entry = { partition, registration };
    if (list) list.push(entry);
    else leads.set(registration.leader, [entry]);
  }
  return leads;
}

/**
 * @param {Model} model
 * @param {Map<number, Lead[]>} leads
 * @param {number} at
 */
function summary(model, leads, at) {
  const all = [...leads.values()].flat();
  const under = all.filter(({ registration: r }) => r.isr.length < r.replicas.length).length;
  const offline = (leads.get(-1) ?? []).length;
  const down = [...model.brokers.keys()].filter(
    (id) => model.processAt(id, at).state === "down",
  ).length;
  return [
    many(all.length, "partition"),
    under ? `${under} under-replicated` : "all in sync",
    offline ? `${offline} offline` : "",
    down ? `${many(down, "broker")} down` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/**
 * @param {number[]} ids
 * @param {number} width
 * @param {number} shown
 * @returns {Place}
 */
function ellipse(ids, width, shown) {
  const narrow = width < 620,
    large = document.body.classList.contains("projector");
  const wide = narrow ? 132 : large ? 260 : 190;
  const height = narrow ? 470 : Math.min(Math.max(shown - 66, 420), 620),
    top = 76,
    space = height - 150;
  const rx = Math.max((width - wide) / 2 - 12, 60),
    ry = space / 2 - (large ? 50 : 34);
  return {
    height,
    wide,
    clients: height - 26,
    controller: { x: width / 2, y: 22 },
    of: (id) => {
      const angle =
        -Math.PI / 2 +
        (ids.indexOf(id) * 2 * Math.PI) / ids.length +
        (ids.length === 2 ? Math.PI / 2 : 0);
      return {
        x: width / 2 + Math.min(rx, 360) * Math.cos(angle),
        y: top + space / 2 + ry * Math.sin(angle),
      };
    },
  };
}

/**
 * @param {number[]} ids
 * @param {number} width
 * @returns {Place}
 */
function grid(ids, width) {
  const wide = 118,
    columns = Math.max(2, Math.floor(width / (wide + 12)));
  const rows = Math.ceil(ids.length / columns),
    tall = 74;
  const height = 120 + rows * tall;
  return {
    height,
    wide,
    isGrid: true,
    clients: height - 22,
    controller: { x: width / 2, y: 22 },
    of: (id) => {
      const index = ids.indexOf(id);
      return {
        x: (((index % columns) + 0.5) * width) / columns,
        y: 90 + Math.floor(index / columns) * tall,
      };
    },
  };
}

/**
 * @param {Page} page
 * @param {number} id
 * @param {Point} place
 * @param {Lead[]} led
 * @param {number} wide
 */
function brokerTree(page, id, { x, y }, led, wide) {
  const { model, at } = page;
  const process = model.processAt(id, at),
    fenced = model.isFenced(id, at);
  const words = processWords(process) + (fenced && process.state === "up" ? ", fenced" : "");
  const small = wide < 130,
    most = small ? 0 : MAX_CHIPS;
  return h(
    "div",
    {
      key: `b${id}`,
      class: `node broker ${process.state}${fenced ? " fenced" : ""}`,
      style: `left:${x}px;top:${y}px;width:${wide}px`,
    },
    h(
      "button",
      {
        type: "button",
        class: "head",
        "data-broker": id,
        "data-flight": `b${id}`,
        "aria-haspopup": "menu",
        disabled: page.readOnly === true,
        "aria-label": `Broker ${id}: ${words}, leads ${many(led.length, "partition")}. Actions`,
        onclick: (event) => page.controls?.brokerMenu(event, id),
      },
      h("b", null, `Broker ${id}`),
      h("span", { class: "state" }, words),
    ),
    h(
      "div",
      { class: "chips" },
      led.slice(0, most).map(({ partition, registration }) => {
        const lacks = registration.isr.length < registration.replicas.length;
        return h(
          "button",
          {
            key: partition.name,
            type: "button",
            class: `chip${lacks ? " under" : ""}`,
            "aria-label": `${partition.name}, leader ${id}, ISR ${registration.isr.length} of ${registration.replicas.length}`,
            onclick: () => page.showPartition(partition.name),
          },
          partition.name,
          lacks ? " !" : "",
        );
      }),
      led.length > most
        ? h("span", { class: "dim" }, most ? `+${led.length - most}` : `leads ${led.length}`)
        : null,
    ),
  );
}

/**
 * @param {Page} page
 * @param {Lead[]} list
 */
function offlineTree(page, list) {
  if (!list.length) return null;
  return h(
    "p",
    { class: "offline" },
    h("b", { class: "bad-text" }, "No leader: "),
    list.slice(0, 20).map(({ partition }) =>
      button(partition.name, () => page.showPartition(partition.name), {
        key: partition.name,
        class: "chip bad",
      }),
    ),
    list.length > 20 ? ` and ${list.length - 20} more` : "",
  );
}

/**
 * Links between brokers: all pairs of a few brokers; of many only the impaired ones.
 *
 * @param {Page} page
 * @param {number[]} ids
 * @param {Place} place
 */
function linkTrees(page, ids, place) {
  const { model, at } = page;
  const trees = [];
  for (const [index, a] of ids.entries()) {
    for (const b of ids.slice(index + 1)) {
      const to = model.linkAt(a, b, at),
        from = model.linkAt(b, a, at);
      const isCut = to.cut || from.cut,
        slow = to.slow || from.slow;
      if (place.isGrid && !isCut && !slow) continue;
      if (trees.length > 300) return trees;
      const words =
        to.cut && from.cut
          ? "cut"
          : to.cut
            ? `cut from ${a} to ${b}`
            : from.cut
              ? `cut from ${b} to ${a}`
              : slow
                ? `slow (${slow})`
                : "";
      trees.push(
        linkTree(page, [a, b], place.of(a), place.of(b), words, isCut ? "cut" : slow ? "slow" : ""),
      );
    }
  }
  return trees;
}

/**
 * @param {Page} page
 * @param {[number, number]} ends
 * @param {Point} from
 * @param {Point} to
 * @param {string} words
 * @param {string} kind
 */
function linkTree(page, [a, b], from, to, words, kind) {
  const d = `M${from.x} ${from.y}L${to.x} ${to.y}`;
  const open = (/** @type {{ currentTarget: Element }} */ event) =>
    page.controls?.linkMenu(event, a, b);
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  return h(
    "g",
    {
      key: `${a}-${b}`,
      class: `link ${kind}`,
      role: "button",
      tabindex: page.readOnly ? null : 0,
      "data-link": `${a}-${b}`,
      "aria-haspopup": "menu",
      "aria-label": `Link between brokers ${a} and ${b}: ${words || "healthy"}. Actions`,
      onclick: page.readOnly ? null : open,
      onkeydown: page.readOnly ? null : onEnter(open),
    },
    h("path", { key: "hit", d, class: "hit" }),
    h("path", { key: "line", d, class: "line" }),
    kind === "cut"
      ? h("path", {
          key: "cross",
          class: "cross",
          d: `M${middle.x - 7} ${middle.y - 7}l14 14m0 -14l-14 14`,
        })
      : null,
    words
      ? h("text", { key: "words", x: middle.x, y: middle.y - 12, "text-anchor": "middle" }, words)
      : null,
  );
}

/**
 * A line from each client to the brokers that it asked in the last seconds.
 *
 * @param {Page} page
 * @param {Client[]} clients
 * @param {Place} place
 * @param {number} width
 */
function clientLinks(page, clients, place, width) {
  const { model, at } = page;
  return clients.flatMap((client, index) => {
    const brokers = new Map();
    for (let i = lastAt(client.exchanges, at), tries = 0; i >= 0 && tries < 40; i--, tries++) {
      const row = client.exchanges[i];
      if (at - row.at > 5000) break;
      if (!brokers.has(row.broker) && model.brokers.has(row.broker)) brokers.set(row.broker, row);
    }
    const x = clientX(index, clients.length, width);
    return [...brokers].map(([broker, row]) => {
      const to = place.of(broker);
      return h("path", {
        key: `${client.name} ${broker}`,
        class: `asks${row.error ? " refused" : ""}`,
        d: `M${x} ${place.clients}L${to.x} ${to.y}`,
      });
    });
  });
}
