// @ts-check
// The view of the cluster: brokers, controller and clients as nodes, links between them.
//
// Up to eight brokers, on a narrow screen up to three, stand on an ellipse around the controller,
// with all links, and clients at the left.  More brokers stand in a grid, and only links that are cut
// or slow are drawn.  Links lead around boxes (routes.js).

import { button, h, onEnter } from "../dom.js";
import { clusterLegend } from "../legend.js";
import { lastAt } from "../model.js";
import { moment } from "../moment.js";
import { pathOf, pointAt, routeAround } from "../routes.js";
import { fencingWords, sessionLeft, urgencyOf } from "../sessions.js";
import { registerView } from "../views.js";
import { waitingTree } from "../waiting.js";
import { many, processWords } from "../words.js";

/** @import { Model } from "../model.js" */
/** @import { Page } from "../page.js" */
/** @import { Box, Client, Lead, Place, Route } from "../types.js" */

registerView("cluster", moment(clusterView));

const CIRCLE_MAX = 8;
const NARROW_MAX = 3;
const MAX_CHIPS = 4;
const MAX_CLIENTS = 16;
/** What stands around the stage besides the legend: the title. */
const AROUND_PX = 72;
const NARROW_PX = 620;

/**
 * @param {Page} page
 * @param {number} width
 */
function clusterView(page, width) {
  const { model, at } = page;
  const ids = [...model.brokers.keys()].filter((id) => id !== model.controllerNode);
  const leads = leadersAt(model, at, page.internal);
  const clients = [...model.clients.values()]
    .filter((client) => lastExchange(client, at))
    .slice(0, MAX_CLIENTS);
  const names = clients.map((client) => client.name);
  const most = width < NARROW_PX ? NARROW_MAX : CIRCLE_MAX;
  const place =
    ids.length <= most
      ? ellipse(ids, names, width, page.height - page.legendHeight)
      : grid(ids, names, width);
  return [
    h("h2", null, "Cluster ", h("small", null, summary(model, leads, at))),
    h(
      "div",
      { class: `stage${place.isGrid ? " grid" : ""}`, style: `height:${place.height}px` },
      h(
        "svg",
        { width, height: place.height, class: "links", role: "group", "aria-label": "Links" },
        place.isGrid ? null : controlLinks(ids, place),
        linkTrees(page, ids, place),
        place.isGrid ? null : clientLinks(page, clients, place),
      ),
      controllerTree(page, place),
      ids.map((id) => brokerTree(page, id, leads.get(id) ?? [], place)),
      clients.map((client) => clientTree(page, client, place)),
    ),
    offlineTree(page, leads.get(-1) ?? []),
    clusterLegend(),
  ];
}

/** @param {Box} box */
const styleOf = ({ x, y, width, height }) =>
  `left:${x}px;top:${y}px;width:${width}px;height:${height}px`;

/**
 * @param {Page} page
 * @param {Place} place
 */
function controllerTree({ model, at }, place) {
  const { state, epoch } = model.controllerAt(at);
  const words = state !== "up" ? "down" : epoch === undefined ? "up" : `up, epoch ${epoch}`;
  return h(
    "div",
    {
      key: "controller",
      class: `node controller ${state}`,
      "data-flight": `b${model.controllerNode}`,
      style: styleOf(place.controller),
    },
    h("b", null, "Controller"),
    h("span", null, words),
  );
}

/**
 * @param {Page} page
 * @param {Client} client
 * @param {Place} place
 */
function clientTree(page, { name }, place) {
  const box = place.client(name);
  return [
    h(
      "button",
      {
        key: name,
        type: "button",
        class: "node clientnode",
        "data-flight": `c${name}`,
        style: styleOf(box),
        onclick: () => page.showClient(name),
      },
      h("b", null, name),
    ),
    h(
      "span",
      {
        key: `waiting ${name}`,
        class: "below",
        style: `left:${box.x - box.width / 2}px;top:${box.y + box.height / 2 + 2}px`,
      },
      waitingTree(name, page.model.waitingAt(name, page.at), page.at),
    ),
  ];
}

/**
 * @param {Client} client
 * @param {number} at
 */
const lastExchange = (client, at) => client.exchanges[lastAt(client.exchanges, at)];

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
 * Few brokers: on an ellipse, clients at the left; on narrow screens below.
 *
 * @param {number[]} ids
 * @param {string[]} clients
 * @param {number} width
 * @param {number} shown the height of the view without its legend
 * @returns {Place}
 */
function ellipse(ids, clients, width, shown) {
  const isNarrow = width < NARROW_PX,
    isLarge = document.body.classList.contains("projector");
  const wide = isNarrow ? 124 : isLarge ? 250 : 180,
    tall = isLarge ? 152 : 92;
  const height = isNarrow ? 520 : Math.min(Math.max(shown - AROUND_PX, 400), 760);
  const column = isNarrow || !clients.length ? 0 : isLarge ? 230 : 170;
  const bottom = isNarrow && clients.length ? 64 : 0;
  const area = { left: column, width: width - column, height: height - bottom };
  const x = area.left + area.width / 2,
    y = area.height / 2;
  const rx = Math.min((area.width - wide) / 2 - 14, 460),
    ry = (area.height - tall) / 2 - 6;
  const hasCentre = ids.length > 2;
  // The ellipse fills the stage: a triangle of three brokers, too.
  const turn = ids.length === 2 ? Math.PI / 2 : 0;
  const sines = ids.map((_, i) => Math.sin((i * 2 * Math.PI) / ids.length + turn - Math.PI / 2));
  const low = Math.min(...sines),
    span = Math.max(...sines) - low || 1;
  return {
    ...stageOf(width, height),
    controller: {
      x,
      y: hasCentre ? y + (ids.length === 3 ? tall / 4 : 0) : isLarge ? 30 : 24,
      width: isLarge ? 250 : isNarrow ? 130 : 170,
      height: isLarge ? 50 : 36,
    },
    broker(id) {
      const index = ids.indexOf(id);
      const angle = (index * 2 * Math.PI) / ids.length + turn - Math.PI / 2;
      const height = span < 0.01 ? 0 : (2 * (sines[index] - low)) / span - 1;
      return { x: x + rx * Math.cos(angle), y: y + ry * height, width: wide, height: tall };
    },
    client(name) {
      const index = clients.indexOf(name);
      const each = isNarrow ? width / clients.length : height / clients.length;
      return isNarrow
        ? { x: (index + 0.5) * each, y: height - 44, width: Math.min(each - 6, 130), height: 28 }
        : {
            x: column / 2 + 2,
            y: (index + 0.5) * each,
            width: column - 16,
            height: isLarge ? 44 : 30,
          };
    },
  };
}

/**
 * @param {number} width
 * @param {number} height
 */
const stageOf = (width, height) => ({ width, height, isGrid: false });

/**
 * Many brokers: in a grid, clients in a row below.
 *
 * @param {number[]} ids
 * @param {string[]} clients
 * @param {number} width
 * @returns {Place}
 */
function grid(ids, clients, width) {
  const wide = 118,
    columns = Math.max(2, Math.floor(width / (wide + 12)));
  const rows = Math.ceil(ids.length / columns),
    tall = 86;
  const height = 124 + rows * tall;
  return {
    ...stageOf(width, height),
    isGrid: true,
    controller: { x: width / 2, y: 22, width: 190, height: 34 },
    broker(id) {
      const index = ids.indexOf(id);
      return {
        x: (((index % columns) + 0.5) * width) / columns,
        y: 92 + Math.floor(index / columns) * tall,
        width: wide,
        height: 68,
      };
    },
    client(name) {
      const each = width / clients.length;
      const x = (clients.indexOf(name) + 0.5) * each;
      return { x, y: height - 20, width: Math.min(each - 6, 150), height: 28 };
    },
  };
}

/** @type {Map<string, Route>} */
const routes = new Map();
const MAX_ROUTES = 2_000;

/**
 * The route between two nodes of a stage, around the others; found once per layout.
 *
 * @param {Place} place
 * @param {Box} from
 * @param {Box} to
 * @param {Box[]} all
 */
function routeOn(place, from, to, all) {
  const key = [place.width, place.height, ...all.flatMap(({ x, y, width }) => [x, y, width])]
    .concat(all.indexOf(from), all.indexOf(to))
    .join(" ");
  let route = routes.get(key);
  if (!route) {
    const others = all.filter((box) => box !== from && box !== to);
    route = routeAround(from, to, others, place);
    if (routes.size > MAX_ROUTES) routes.clear();
    routes.set(key, route);
  }
  return route;
}

/**
 * @param {Page} page
 * @param {number} id
 * @param {Lead[]} led
 * @param {Place} place
 */
function brokerTree(page, id, led, place) {
  const { model, at } = page;
  const process = model.processAt(id, at),
    fenced = model.isFenced(id, at);
  const fencing = fencingWords(model, id, at);
  const words = processWords(process) + (fenced && process.state === "up" ? ", fenced" : "");
  const most = place.isGrid ? 0 : led.length > MAX_CHIPS ? MAX_CHIPS - 1 : MAX_CHIPS;
  return h(
    "div",
    {
      key: `b${id}`,
      class: `node broker ${process.state}${fenced ? " fenced" : ""}`,
      "data-flight": `b${id}`,
      style: styleOf(place.broker(id)),
    },
    sessionBorder(page, id, place.broker(id), process.state === "down"),
    h(
      "button",
      {
        type: "button",
        class: "head",
        "data-broker": id,
        "aria-haspopup": "menu",
        disabled: page.readOnly === true,
        "aria-label": `Broker ${id}: ${words}, leads ${many(led.length, "partition")}. Actions`,
        onclick: (event) => page.controls?.brokerMenu(event, id),
      },
      h("b", null, `Broker ${id}`),
      h(
        "span",
        { class: "state" },
        words,
        fencing ? h("span", { class: "warn-text" }, ` · ${fencing}`) : null,
      ),
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
    fenced ? h("div", { key: "fence", class: "fence", "aria-hidden": "true" }) : null,
  );
}

/**
 * The border of a broker: its session at the controller, which empties; a cross if it is down.
 *
 * @param {Page} page
 * @param {number} id
 * @param {Box} box
 * @param {boolean} isDown
 */
function sessionBorder({ model, at }, id, { width, height }, isDown) {
  const left = sessionLeft(model, id, at);
  const border = { x: 1.5, y: 1.5, width: width - 3, height: height - 3, rx: 8, pathLength: 100 };
  return h(
    "svg",
    {
      width,
      height,
      class: `border session ${left ? urgencyOf(left.share) : "none"}`,
      "aria-hidden": "true",
    },
    left ? h("rect", { key: "spent", ...border, class: "spent" }) : null,
    left
      ? h("rect", {
          key: "left",
          ...border,
          "stroke-dasharray": `${(left.share * 100).toFixed(1)} 100`,
        })
      : null,
    isDown
      ? h("path", {
          key: "cross",
          class: "dead",
          d: `M6 6L${width - 6} ${height - 6}m0 ${12 - height}L6 ${height - 6}`,
        })
      : null,
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
 * All boxes of a stage with few brokers, each of them once.
 *
 * @param {number[]} ids
 * @param {Place} place
 * @param {string[]} [clients]
 */
const boxesOf = (ids, place, clients = []) => {
  const brokers = ids.map((id) => place.broker(id));
  return {
    brokers,
    all: [...brokers, place.controller, ...clients.map((name) => place.client(name))],
  };
};

/**
 * The lines between brokers and the controller, which heartbeats take.
 *
 * @param {number[]} ids
 * @param {Place} place
 */
function controlLinks(ids, place) {
  const { brokers, all } = boxesOf(ids, place);
  return ids.map((id, index) =>
    h("path", {
      key: `control ${id}`,
      class: "control",
      "data-route": `b${id} controller`,
      d: pathOf(routeOn(place, brokers[index], place.controller, all)),
    }),
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
  const { brokers, all } = boxesOf(ids, place);
  for (const [a, b] of place.isGrid ? knownPairs(model) : pairsOf(ids)) {
    if (!ids.includes(a) || !ids.includes(b)) continue;
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
    const [start, end] = [brokers[ids.indexOf(a)], brokers[ids.indexOf(b)]];
    const route = place.isGrid
      ? routeAround(start, end, [], place)
      : routeOn(place, start, end, all);
    trees.push(linkTree(page, [a, b], route, words, isCut ? "cut" : slow ? "slow" : ""));
  }
  return trees;
}

/**
 * @param {number[]} ids
 * @returns {[number, number][]}
 */
const pairsOf = (ids) =>
  ids.flatMap((a, index) =>
    ids.slice(index + 1).map((b) => /** @type {[number, number]} */ ([a, b])),
  );

/**
 * The pairs whose links were ever cut or slow.
 *
 * @param {Model} model
 * @returns {[number, number][]}
 */
const knownPairs = (model) => {
  const pairs = [...model.links.values()].map(({ source, destination }) =>
    source < destination ? [source, destination] : [destination, source],
  );
  const names = new Map(pairs.map((pair) => [String(pair), pair]));
  return /** @type {[number, number][]} */ ([...names.values()]);
};

/**
 * @param {Page} page
 * @param {[number, number]} ends
 * @param {Route} route
 * @param {string} words
 * @param {string} kind
 */
function linkTree(page, [a, b], route, words, kind) {
  const d = pathOf(route);
  const open = (/** @type {{ currentTarget: Element }} */ event) =>
    page.controls?.linkMenu(event, a, b);
  const middle = pointAt(route, 0.5);
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
    h("path", { key: "line", d, class: "line", "data-route": `b${a} b${b}` }),
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
 */
function clientLinks(page, clients, place) {
  const { model, at } = page;
  const ids = [...model.brokers.keys()].filter((id) => id !== model.controllerNode);
  const { brokers, all } = boxesOf(
    ids,
    place,
    clients.map((client) => client.name),
  );
  return clients.flatMap((client, index) => {
    const asked = new Map();
    for (let i = lastAt(client.exchanges, at), tries = 0; i >= 0 && tries < 40; i--, tries++) {
      const row = client.exchanges[i];
      if (at - row.at > 5000) break;
      if (!asked.has(row.broker) && ids.includes(row.broker)) asked.set(row.broker, row);
    }
    const from = all[ids.length + 1 + index];
    return [...asked].map(([broker, row]) =>
      h("path", {
        key: `${client.name} ${broker}`,
        class: `asks${row.error ? " refused" : ""}`,
        "data-route": `c${client.name} b${broker}`,
        d: pathOf(routeOn(place, from, brokers[ids.indexOf(broker)], all)),
      }),
    );
  });
}
