// @ts-check
// Draws what travels over a view, and the crown on its way to a new leader.
//
// The canvas lies over the page.  Each frame asks journeys.js where everything is at the moment
// shown; only the crown's flight is the page's own, since an election takes no time.

import { byId } from "./dom.js";
import { epochColour } from "./epochs.js";
import { journeysAt, LOST_AT } from "./journeys.js";
import { epochAt } from "./replicas.js";
import { pointAt, routeAround, routeOf } from "./routes.js";

/** @import { Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Box, Journey, Point, Route } from "./types.js" */

const CROWN_MS = 900;
const MAX_CROWNS = 12;
/** The most that is drawn at once. */
const MAX_JOURNEYS = 200;
/** The views with elements to fly between. */
const VIEWS = ["partition", "cluster"];
/** The distance from the right ends of the logs to the wire between a partition's replicas. */
const WIRE_PX = 46;
const LANES_PX = 6;
/** How far from a client's name others' records pass, and the room for half an error's name. */
const PAST_PX = 10;
const WORDS_PX = 70;
const PARKED_PX = 17;
/** The requests that wait, and the most that are drawn of them at a broker. */
const PARKED = new Set(["parked", "asked"]);
const MAX_PARKED = 6;
const CROWN = new Path2D("M2 16L1 4l6 5 5-8 5 8 6-5-1 12z");
const HEART = new Path2D("M0 4C-7 -1 -4 -6 0 -3C4 -6 7 -1 0 4z");
const BACK = new Set(["answer", "ack", "read", "refused", "heartbeat answer", "isr answer"]);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** @typedef {{ from: Point, to: Point, began: number, words: string }} Crown */

/** What is drawn over a page. */
class Flights {
  constructor() {
    /** @type {Crown[]} */
    this.crowns = [];
    /** @type {Journey[]} */
    this.journeys = [];
    /** @type {Map<string, Route | null>} */
    this.routes = new Map();
    /** The places of the elements for which routes are known, as text. */
    this.layout = "";
    /** Where the canvas is, as text. */
    this.place = "";
    /** The leader of each partition as it was drawn last. */
    this.leaders = new Map();
    this.drawn = { at: 0, view: "" };
    this.isClear = true;
    /** @type {{ [name: string]: string }} */
    this.colours = {};
  }

  /**
   * Draw a frame; returns whether the next frame differs although no time passes in the cluster.
   *
   * @param {Page} page
   */
  draw(page) {
    const isOff = reducedMotion.matches || !VIEWS.includes(page.view) || page.model.began === null;
    this.journeys = isOff
      ? []
      : journeysAt(page.model, page.at, page.time.pace, partitionOf(page)).slice(0, MAX_JOURNEYS);
    this.watchLeaders(page, isOff);
    const now = performance.now();
    this.crowns = this.crowns.filter(({ began }) => now < began + CROWN_MS);
    document.body.classList.toggle("crowning", this.crowns.length > 0);
    const isEmpty = !this.journeys.length && !this.crowns.length && page.view !== "partition";
    if (isOff || isEmpty) this.clear();
    else this.paint(page, now);
    return this.crowns.length > 0;
  }

  clear() {
    if (this.isClear) return;
    this.isClear = true;
    byId("flights").hidden = true;
  }

  /**
   * @param {Page} page
   * @param {number} now
   */
  paint(page, now) {
    const view = byId("view").getBoundingClientRect();
    const context = this.context(view);
    this.isClear = false;
    this.measure(page);
    const scale = document.body.classList.contains("projector") ? 1.5 : 1;
    if (page.view === "partition") this.paintWire(context);
    /** @type {Map<string, number>} */
    const parked = new Map();
    for (const journey of this.journeys) {
      const route = this.routeOf(page, journey);
      if (!route) continue;
      let place = pointAt(route, journey.share);
      if (PARKED.has(journey.kind)) {
        const index = parked.get(journey.to) ?? 0;
        if (index >= MAX_PARKED) continue;
        parked.set(journey.to, index + 1);
        place = parkedAt(route, index, scale, page.view);
      }
      if (journey.kind === "refused") {
        const half = (wordWidth(context, journey.words ?? "") * scale) / 2;
        const client = this.boxes?.get(journey.to);
        for (let share = journey.share; client && covers(place, half, scale, client); ) {
          share -= 0.02;
          if (share < 0) break;
          place = pointAt(route, share);
        }
        const x = Math.max(Math.min(place.x, view.right - half), view.left + half);
        place = { x, y: place.y }; // no word is cut
      }
      paintJourney(context, journey, place, scale, this.colours, page);
    }
    for (const crown of this.crowns) paintCrown(context, crown, now, scale, this.colours);
  }

  /**
   * The canvas, cleared, over the view alone: each frame, the browser draws what is under it again.
   * Its coordinates are those of the window.
   *
   * @param {DOMRect} view
   */
  context({ left, top, width, height }) {
    const canvas = /** @type {HTMLCanvasElement} */ (byId("flights"));
    const context = canvas.getContext("2d");
    if (!context) throw new Error("no canvas");
    const ratio = devicePixelRatio;
    const size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
    canvas.hidden = false;
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    const place = `${left}px ${top}px ${width}px ${height}px`;
    if (this.place !== place) {
      this.place = place;
      const style = {
        left: `${left}px`,
        top: `${top}px`,
        width: `${width}px`,
        height: `${height}px`,
      };
      Object.assign(canvas.style, style);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(-left, -top);
    return context;
  }

  /**
   * Read the places of all elements, once per drawing of the view.
   *
   * @param {Page} page
   */
  measure(page) {
    /** @type {Map<string, Box>} */
    const boxes = new Map();
    for (const element of document.querySelectorAll("#view [data-flight]")) {
      const { left, top, width, height } = element.getBoundingClientRect();
      const box = { x: left + width / 2, y: top + height / 2, width, height };
      boxes.set(element.getAttribute("data-flight") ?? "", box);
    }
    const root = document.documentElement;
    const theme = `${root.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    const layout = `${page.view} ${theme} ${[...boxes].flatMap(([name, box]) => [name, Math.round(box.x), Math.round(box.y)]).join(" ")}`;
    if (layout === this.layout) return;
    this.layout = layout;
    this.boxes = boxes;
    this.routes.clear();
    const style = getComputedStyle(root);
    for (const name of ["back", "line", "text", "dim", "accent", "bad", "good", "warn", "read"])
      this.colours[name] = style.getPropertyValue(`--${name}`).trim();
  }

  /**
   * @param {Page} page
   * @param {Journey} journey
   * @returns {Route | null}
   */
  routeOf(page, { from, to, kind }) {
    const isBack = BACK.has(kind);
    const key = `${from} ${to} ${isBack}`;
    let route = this.routes.get(key);
    if (route === undefined) {
      const boxes = this.boxes ?? new Map();
      const start = boxes.get(from),
        end = boxes.get(to);
      route =
        !start || !end
          ? null
          : page.view === "partition"
            ? this.alongWire(start, end, isBack)
            : document.querySelector("#view .stage.grid")
              ? throughGutters(start, end)
              : (alongLink(from, to, page) ?? aroundBoxes(start, end, boxes));
      this.routes.set(key, route);
    }
    return route;
  }

  /** @returns {Box[]} */
  get logs() {
    const boxes = [...(this.boxes ?? new Map())];
    return boxes.filter(([name]) => name.startsWith("b")).map(([, box]) => box);
  }

  /** The x of the wire, at the right of all logs. */
  get wireX() {
    return Math.max(...this.logs.map((box) => box.x + box.width / 2)) + WIRE_PX;
  }

  /**
   * @param {Box} from
   * @param {Box} to
   * @param {boolean} isBack answers keep to the other side of the wire
   */
  alongWire(from, to, isBack) {
    const x = this.wireX + (isBack ? LANES_PX : -LANES_PX);
    return routeOf([...this.pointsToWire(from, x), ...this.pointsToWire(to, x).reverse()]);
  }

  /**
   * The way from a box to the wire: past the names of the clients beside it, not through them, on
   * the side away from the logs.
   *
   * @param {Box} box
   * @param {number} x of the wire
   */
  pointsToWire(box, x) {
    const right = this.rightOf(box);
    if (right <= box.x + box.width / 2)
      return [
        { x: right, y: box.y },
        { x, y: box.y },
      ];
    const isProducer = box.y < Math.min(...this.logs.map((log) => log.y));
    const turn = Math.min(right + WORDS_PX, x),
      y = box.y + (isProducer ? -1 : 1) * (box.height / 2 + PAST_PX);
    return [
      { x: box.x, y },
      { x: turn, y },
      { x: turn, y: box.y },
      { x, y: box.y },
    ];
  }

  /**
   * The right end of the boxes that stand in one line with a box.
   *
   * @param {Box} box
   */
  rightOf(box) {
    const beside = [...(this.boxes ?? new Map()).values()].filter(
      (other) => Math.abs(other.y - box.y) < box.height / 2,
    );
    return Math.max(...beside.map((other) => other.x + other.width / 2));
  }

  /** @param {CanvasRenderingContext2D} context */
  paintWire(context) {
    const rows = [...(this.boxes ?? new Map())];
    if (!this.logs.length) return;
    const x = this.wireX;
    const ys = rows.map(([, box]) => box.y);
    context.strokeStyle = this.colours.line;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, Math.min(...ys));
    context.lineTo(x, Math.max(...ys));
    for (const [, box] of rows) {
      // From the last client of a line on: a line through a name would strike it out.
      context.moveTo(this.rightOf(box) + 2, box.y);
      context.lineTo(x, box.y);
    }
    context.stroke();
  }

  /**
   * Let the crown of each partition with a new leader fly there.
   *
   * @param {Page} page
   * @param {boolean} isOff
   */
  watchLeaders(page, isOff) {
    const { at, view, model } = page;
    const isNext = view === this.drawn.view && at >= this.drawn.at;
    const shown = page.shownPartition;
    const partitions =
      view === "partition" ? (shown ? [shown] : []) : [...model.partitions.values()];
    for (const partition of at === this.drawn.at && isNext ? [] : partitions) {
      if (view !== "partition" && partition.internal) continue;
      const leader = model.registrationAt(partition, at)?.leader ?? -1;
      if (leader < 0) continue;
      const before = this.leaders.get(partition.name);
      this.leaders.set(partition.name, leader);
      if (isOff || !isNext || before === undefined || before === leader) continue;
      const from = crownPlace(before, view),
        to = crownPlace(leader, view);
      const words = view === "partition" ? "" : partition.name;
      if (from && to && this.crowns.length < MAX_CROWNS)
        this.crowns.push({ from, to, began: performance.now(), words });
    }
    if (!isNext) {
      for (const each of partitions)
        this.leaders.set(each.name, model.registrationAt(each, at)?.leader ?? -1);
    }
    this.drawn = { at, view };
  }
}

const flights = new Flights();
/** For tests, and for the browser's console. */
Object.assign(window, { kclusterFlights: flights });

/**
 * Draw what travels at the moment shown; returns whether the next frame differs although no time
 * passes in the cluster.
 *
 * @param {Page} page
 */
export const drawFlights = (page) => flights.draw(page);

/**
 * The partition whose records are drawn; null, in the view of the cluster: all partitions.
 *
 * @param {Page} page
 * @returns {Partition | null}
 */
const partitionOf = (page) => (page.view === "partition" ? page.shownPartition : null);

/**
 * @param {number} broker
 * @param {string} view
 * @returns {Point | null}
 */
function crownPlace(broker, view) {
  const name =
    view === "partition" ? `.replica [data-broker="${broker}"]` : `[data-flight="b${broker}"]`;
  const found = document.querySelector(`#view ${name}`)?.getBoundingClientRect();
  return found
    ? {
        x: found.left + (view === "partition" ? 52 : found.width / 2),
        y: found.top + found.height / 2,
      }
    : null;
}

const POINTS = 24;

/**
 * The route along the line that the view has drawn between two nodes; null if there is none.
 *
 * @param {string} from
 * @param {string} to
 * @param {Page} page
 */
function alongLink(from, to, { model }) {
  const controller = `b${model.controllerNode}`;
  const [start, end] = [from, to].map((name) => (name === controller ? "controller" : name));
  const lineOf = (/** @type {string} */ name) =>
    /** @type {SVGPathElement | null} */ (
      document.querySelector(`#view path[data-route="${CSS.escape(name)}"]`)
    );
  const ahead = lineOf(`${start} ${end}`);
  const line = ahead ?? lineOf(`${end} ${start}`);
  const stage = line?.ownerSVGElement?.getBoundingClientRect();
  if (!line || !stage) return null;
  const length = line.getTotalLength();
  const points = Array.from({ length: POINTS + 1 }, (_, index) => {
    const { x, y } = line.getPointAtLength((length * index) / POINTS);
    return { x: x + stage.left, y: y + stage.top };
  });
  return routeOf(ahead ? points : points.reverse());
}

/**
 * @param {Box} from
 * @param {Box} to
 * @param {Map<string, Box>} boxes
 */
function aroundBoxes(from, to, boxes) {
  const others = [...boxes.values()].filter((box) => box !== from && box !== to);
  const stage = { width: innerWidth, height: innerHeight };
  return routeAround(from, to, others, stage);
}

/**
 * The route between two boxes of a grid: through the spaces between rows and columns.
 *
 * @param {Box} from
 * @param {Box} to
 */
function throughGutters(from, to) {
  const isUp = to.y < from.y;
  const way = (/** @type {Box} */ box, /** @type {boolean} */ isTop) =>
    box.y + (isTop ? -1 : 1) * (box.height / 2);
  const upper = isUp ? to : from,
    lower = isUp ? from : to;
  const low = way(lower, true) - 6,
    high = way(upper, false) + 6;
  const side = upper.x - upper.width / 2 - 6;
  const points = [
    { x: upper.x, y: way(upper, false) },
    { x: upper.x, y: high },
    { x: side, y: high },
    { x: side, y: low },
    { x: lower.x, y: low },
    { x: lower.x, y: way(lower, true) },
  ];
  return routeOf(isUp ? points.reverse() : points);
}

/**
 * The place of a request that waits: beside the log, or at the edge of the box.
 *
 * @param {Route} route
 * @param {number} index
 * @param {number} scale
 * @param {string} view
 */
function parkedAt({ points }, index, scale, view) {
  const end = points[points.length - 1];
  if (view === "partition") {
    const across = index % 2 ? 1 : -1;
    return {
      x: end.x + 12 * scale + Math.floor(index / 2) * PARKED_PX * scale,
      y: end.y + across * 9 * scale,
    };
  }
  const before = points[points.length - 2];
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1;
  const away = 10 * scale;
  return {
    x: end.x + ((before.x - end.x) / length) * away,
    y: end.y + ((before.y - end.y) / length) * away,
  };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Journey} journey
 * @param {Point} place
 * @param {number} scale
 * @param {{ [name: string]: string }} colours
 * @param {Page} page
 */
function paintJourney(context, journey, { x, y }, scale, colours, page) {
  const { kind, share, isLost } = journey;
  context.save();
  context.translate(x, y);
  context.scale(scale, scale);
  if (isLost && share >= LOST_AT) cross(context, colours.bad);
  else if (kind === "fetch" || kind === "parked")
    token(context, journey.words ?? "", colours.accent, colours.back);
  else if (kind === "ask" || kind === "asked") token(context, "", colours.read, colours.back);
  else if (kind === "answer") cells(context, journey, page, colours);
  else if (kind === "produce") squares(context, journey.cells?.length || 1, () => colours.text);
  else if (kind === "read" && journey.cells?.length)
    squares(context, journey.cells.length, () => colours.read);
  else if (kind === "heartbeat") {
    context.scale(1.4, 1.4);
    context.fillStyle = colours.bad;
    context.fill(HEART);
  } else if (kind === "ack") word(context, "✓", colours.good, colours.back);
  else if (kind === "refused") word(context, journey.words ?? "", colours.bad, colours.back);
  else if (kind === "isr") diamond(context, colours.warn);
  else dot(context, colours.dim);
  context.restore();
}

/**
 * A fetch: a circle, of a follower with its number.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 * @param {string} colour
 * @param {string} back
 */
function token(context, words, colour, back) {
  context.beginPath();
  context.arc(0, 0, words ? 8 : 6, 0, 2 * Math.PI);
  context.fillStyle = back;
  context.fill();
  context.strokeStyle = colour;
  context.lineWidth = words ? 2 : 3;
  context.stroke();
  context.fillStyle = colour;
  context.font = `700 ${words.length > 2 ? 8 : 10}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(words, 0, 0.5);
}

/**
 * An answer to a follower: its records in the colours of their epochs, and the high watermark.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Journey} journey
 * @param {Page} page
 * @param {{ [name: string]: string }} colours
 */
function cells(context, journey, page, colours) {
  const found = journey.cells ?? [];
  const partition = page.shownPartition;
  const leader = Number(journey.from.slice(1));
  const runs = partition && found.length ? page.model.runsAt(partition, leader, page.at) : [];
  squares(context, found.length, (index) => epochColour(epochAt(runs, found[index])));
  const right = (found.length * 10) / 2 + 3;
  context.strokeStyle = found.length ? colours.text : colours.dim;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(found.length ? right : 0, -7);
  context.lineTo(found.length ? right : 0, 7);
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} count
 * @param {(index: number) => string} colourOf
 */
function squares(context, count, colourOf) {
  for (let index = 0; index < count; index++) {
    context.fillStyle = colourOf(index);
    context.fillRect((index - count / 2) * 10 + 0.5, -6, 9, 12);
  }
}

/**
 * Whether a word in its frame lies over a box.
 *
 * @param {Point} place
 * @param {number} half of the word's width
 * @param {number} scale
 * @param {Box} box
 */
const covers = ({ x, y }, half, scale, box) =>
  Math.abs(x - box.x) < box.width / 2 + half && Math.abs(y - box.y) < box.height / 2 + 8 * scale;

/**
 * The width of a word in its frame.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 */
function wordWidth(context, words) {
  context.font = "700 11px system-ui, sans-serif";
  return context.measureText(words).width + 8;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} words
 * @param {string} colour
 * @param {string} back
 */
function word(context, words, colour, back) {
  const width = wordWidth(context, words);
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(-width / 2, -8, width, 16, 8);
  context.fill();
  context.fillStyle = back;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(words, 0, 0.5);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
function diamond(context, colour) {
  context.fillStyle = colour;
  context.fill(new Path2D("M0 -7L7 0 0 7 -7 0z"));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
function dot(context, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(0, 0, 2.5, 0, 2 * Math.PI);
  context.fill();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
function cross(context, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 3;
  context.stroke(new Path2D("M-6 -6L6 6M6 -6L-6 6"));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Crown} crown
 * @param {number} now
 * @param {number} scale
 * @param {{ [name: string]: string }} colours
 */
function paintCrown(context, { from, to, began, words }, now, scale, colours) {
  const share = Math.min((now - began) / CROWN_MS, 1);
  const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
  const rise = Math.sin(Math.PI * share) * 26;
  context.save();
  context.translate(from.x + (to.x - from.x) * eased, from.y + (to.y - from.y) * eased - rise);
  context.scale(
    scale * (1 + 0.6 * Math.sin(Math.PI * share)),
    scale * (1 + 0.6 * Math.sin(Math.PI * share)),
  );
  context.save();
  context.translate(-12, -9);
  context.fillStyle = "#d99a00";
  context.strokeStyle = "#7a5600";
  context.lineWidth = 1;
  context.fill(CROWN);
  context.stroke(CROWN);
  context.restore();
  if (words) {
    context.font = "600 10px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = colours.text;
    context.fillText(words, 0, 20);
  }
  context.restore();
}
