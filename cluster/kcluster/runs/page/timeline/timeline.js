// @ts-check
// The timeline of a run: lanes over a span of time, what is chosen of them, and the pointer.

import { byId, h, patch } from "../dom.js";
import { lasting, moment } from "../words.js";
import {
  box,
  canvasOf,
  colours,
  diamond,
  FONT,
  measured,
  moodColour,
  prepared,
  readColours,
} from "./canvas.js";
import { applicationLane, clientLane } from "./clients.js";
import { chooseAnomaly, chooseWindow, selectionOf } from "./findings.js";
import { fit, leaveFit, openPanel } from "./fit.js";
import { actionsLane, brokerLane, controlLane, paintActionLines } from "./lanes.js";
import { partitionLane } from "./partitions.js";
import { niceStep, Span } from "./span.js";
import { lineTrees, noteTree } from "./tips.js";

/** @import { Page } from "../page.js" */
/** @import { Facts } from "./facts.js" */
/** @import { Lane, Note, Selection } from "../types.js" */

const ALL_SHOWN_UP_TO = 12;
const TIP_PX = 6;
const MAX_NOTED = 5;
const ADDRESS_AFTER_MS = 500;

export class Timeline {
  /**
   * @param {Page} page
   * @param {Facts} facts
   */
  constructor(page, facts) {
    this.page = page;
    this.facts = facts;
    this.span = new Span(this.facts.run.began, this.facts.run.end);
    /** @type {Selection | null} */
    this.chosen = null;
    const { span } = this;
    /** Groups of lanes: the words above them, and the lanes. */
    this.groups = /** @type {[string, Lane[]][]} */ ([
      ["", [actionsLane(facts), controlLane(facts)]],
      ["brokers", facts.brokers.map((broker, place) => brokerLane(facts, broker, place))],
      [
        "partitions: leader, ISR, log end and high watermark of each replica",
        facts.partitions.map((partition) => partitionLane(facts, partition)),
      ],
      [
        "clients: records acked, failed, unknown, read; errors received",
        facts.clients.map((client) => clientLane(facts, client, span)),
      ],
      [
        "the application: records processed, commits, what it missed",
        facts.applications.map((each) => applicationLane(facts, each, span)),
      ],
    ]);
    this.lanes = new Map(this.groups.flatMap(([, lanes]) => lanes).map((lane) => [lane.key, lane]));
    const ours = facts.partitions.filter((each) => !each.internal);
    this.internal = facts.partitions.length - ours.length;
    this.quiet = ours.filter(({ name }) => !facts.changed.has(name)).length;
    /** Which partitions are shown. */
    this.filter = { words: "", quiet: ours.length <= ALL_SHOWN_UP_TO, internal: false };
    /** The keys of expanded lanes. */
    this.tall = new Set();
    /** The size of the page that the lanes were fitted to. */
    this.fitted = "";
    this.addressTimer = 0;
    /** @type {{ x: number, from: number, to: number, pans: boolean, moved: boolean } | null} */
    this.drag = null;
    this.fromAddress();
    addEventListener("pointermove", (event) => this.move(event));
    addEventListener("pointerup", (event) => this.drop(event));
    addEventListener("hashchange", () => this.fromAddress());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.redraw());
    new ResizeObserver(() => {
      if (this.fit()) page.redraw();
    }).observe(document.body);
  }

  get isShown() {
    return document.getElementById("sheet") !== null;
  }

  /** @param {Lane} lane */
  isVisible({ partition, title }) {
    if (!partition) return true;
    const { words, quiet, internal } = this.filter;
    if (words) return title.toLowerCase().includes(words);
    return (internal || !partition.internal) && (quiet || this.facts.changed.has(title));
  }

  // ------------------------------------------------------------------------ the span of time

  /**
   * Show a span of time.  What the pointer was on is elsewhere then.
   *
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    this.span.show(from, to);
    this.moved();
  }

  /** Draw the span, and put it into the address once it rests: browsers limit how often. */
  moved() {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => this.toAddress(), ADDRESS_AFTER_MS);
    this.leave();
    this.page.redraw();
  }

  toAddress() {
    const { from, to, began, isWhole } = this.span;
    const shown = `#t=${Math.round(from - began)}-${Math.round(to - began)}`;
    history.replaceState(null, "", isWhole ? location.pathname + location.search : shown);
  }

  fromAddress() {
    const [, from, to] = /^#t=(-?\d+)-(-?\d+)$/.exec(location.hash) ?? [];
    const { began } = this.span;
    if (to) this.show(began + Number(from), began + Number(to));
  }

  /** @param {[factor: number, around?: number]} by */
  zoom(...by) {
    this.span.zoom(...by);
    this.moved();
  }

  /** @param {number} share */
  pan(share) {
    this.span.pan(share);
    this.moved();
  }

  showAll() {
    this.show(this.span.whole.from, this.span.whole.to);
  }

  /**
   * Scroll a time into view; the zoom stays as it is.
   *
   * @param {number} at
   */
  reveal(at) {
    const { from, to, length } = this.span;
    if (at < from || at > to) this.show(at - length / 2, at + length / 2);
  }

  // ----------------------------------------------------------------------------- the selection

  /** @param {Selection | null} what */
  choose(what) {
    this.chosen = what;
    if (what) {
      if (what.at !== undefined) this.page.look(what.at);
      this.span.include([...what.links, what].flatMap(({ at }) => at ?? []));
      byId("side").scrollTop = 0;
    }
    openPanel("side", what !== null);
    this.moved();
  }

  /** @param {Note} note */
  chooseNote(note) {
    this.reveal(note.at);
    this.choose(selectionOf(this.facts, note));
  }

  /** @param {string} key */
  scrollTo(key) {
    document
      .querySelector(`.row[data-lane="${CSS.escape(key)}"]`)
      ?.scrollIntoView({ block: "nearest" });
  }

  /**
   * Select the event after the selection or the left edge of the view; -1: the one before.
   *
   * @param {1 | -1} direction
   */
  step(direction) {
    const { story } = this.facts;
    const { from, to, began } = this.span;
    const chosen = this.chosen?.note;
    const place = chosen
      ? story.indexOf(chosen) + direction
      : direction > 0
        ? story.findIndex(({ at }) => at >= Math.max(from, began))
        : story.findLastIndex(({ at }) => at <= to);
    const note = story[place];
    if (!note) return;
    this.chooseNote(note);
    this.scrollTo(note.lane);
  }

  // -------------------------------------------------------------------------------- the pointer

  /** @param {Event} event */
  isInPlots({ target }) {
    return target instanceof Element && (target.closest(".plot") !== null || target.id === "axis");
  }

  /** @param {MouseEvent} event */
  timeOf(event) {
    return this.span.timeAt(event.clientX - byId("axis").getBoundingClientRect().left);
  }

  /** @param {Event} event */
  laneOf({ target }) {
    return this.laneIn(target instanceof Element ? target.closest(".row") : null);
  }

  /** @param {Element | null} row */
  laneIn(row) {
    return this.lanes.get(row?.getAttribute("data-lane") ?? "");
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!this.isInPlots(event)) return;
    event.preventDefault();
    const { deltaX, deltaY, shiftKey } = event;
    const sideways = shiftKey ? deltaY || deltaX : deltaX;
    if (Math.abs(sideways) > Math.abs(deltaY) || shiftKey) this.pan(sideways / this.span.width);
    else {
      const factor = Math.exp(Math.sign(deltaY) * Math.min(Math.abs(deltaY), 120) * 0.0022);
      this.zoom(factor, this.timeOf(event));
    }
    this.hover(event);
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (!this.isInPlots(event) || event.button > 1) return;
    const pans = event.shiftKey || event.button === 1 || event.pointerType === "touch";
    this.drag = { x: event.clientX, from: this.span.from, to: this.span.to, pans, moved: false };
    event.preventDefault();
    byId("scroll").focus({ preventScroll: true });
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { drag } = this;
    if (!this.isShown) return;
    if (!drag) {
      if (this.isInPlots(event)) this.hover(event);
      else this.leave();
      return;
    }
    drag.moved ||= Math.abs(event.clientX - drag.x) > 4;
    if (!drag.moved) return;
    this.leave();
    if (drag.pans) {
      const shift = ((drag.x - event.clientX) / this.span.width) * (drag.to - drag.from);
      this.show(drag.from + shift, drag.to + shift);
      return;
    }
    const { left } = byId("axis").getBoundingClientRect();
    const from = Math.max(Math.min(drag.x, event.clientX), left);
    const to = Math.max(drag.x, event.clientX, left);
    Object.assign(byId("brush").style, {
      display: "block",
      left: `${from - byId("sheet").getBoundingClientRect().left}px`,
      width: `${to - from}px`,
    });
  }

  /** @param {PointerEvent} event */
  drop(event) {
    const { drag, span } = this;
    this.drag = null;
    if (!drag || !this.isShown) return;
    const { left } = byId("axis").getBoundingClientRect();
    const first = Math.min(drag.x, event.clientX);
    const last = Math.max(drag.x, event.clientX);
    if (!drag.moved) this.pick(event);
    else if (!drag.pans) this.show(span.timeAt(first - left), span.timeAt(last - left));
    byId("brush").style.display = "none";
  }

  /**
   * The events of a lane that are closest to a time, within a few pixels.
   *
   * @param {Lane} lane
   * @param {number} at
   */
  notesNear(lane, at) {
    const far = (/** @type {Note} */ note) => Math.abs(note.at - at);
    const notes = lane.notes.filter((note) => !note.isQuiet);
    const nearest = notes.reduce((least, note) => Math.min(least, far(note)), Infinity);
    if (nearest > this.span.lasting(TIP_PX)) return [];
    return notes.filter((note) => far(note) === nearest);
  }

  /** @param {MouseEvent} event */
  hover(event) {
    const lane = this.laneOf(event);
    const at = this.timeOf(event);
    const cross = byId("cross");
    cross.style.display = "block";
    cross.style.left = `${event.clientX - byId("sheet").getBoundingClientRect().left}px`;
    const tip = byId("tip");
    tip.hidden = !lane;
    if (!lane) return;
    const { facts } = this;
    const near = this.notesNear(lane, at);
    const lines = lane.describe(at, this.span.lasting(TIP_PX));
    tip.hidden = !lines.length && !near.length;
    const title = `${lane.title}  +${moment(at - this.span.began, 3)}`;
    patch(tip, [
      h("h4", null, title),
      lineTrees(facts, lines),
      near.slice(0, MAX_NOTED).map((note) => noteTree(facts, note)),
      near.length > MAX_NOTED
        ? h("div", { class: "dim" }, `and ${near.length - MAX_NOTED} more`)
        : null,
    ]);
    placeTip(tip, event);
  }

  leave() {
    byId("tip").hidden = true;
    const cross = document.getElementById("cross");
    if (cross) cross.style.display = "none";
  }

  /**
   * Select the anomaly, the event, or else the unavailability under a click.
   *
   * @param {MouseEvent} event
   */
  pick(event) {
    const lane = this.laneOf(event);
    const at = this.timeOf(event);
    this.leave();
    if (!lane) return;
    const reach = this.span.lasting(TIP_PX);
    const anomaly = lane.anomalies.find((found) => Math.abs(found.at - at) <= reach);
    const [note] = this.notesNear(lane, at);
    const outage = lane.windows.find(({ from, to }) => from <= at && at <= to);
    if (anomaly) chooseAnomaly(this, anomaly);
    else if (note) this.chooseNote(note);
    else if (outage) chooseWindow(this, outage);
    else this.choose(null);
  }

  /**
   * Dragging on the overview moves the view, or zooms in if the whole run is visible.
   *
   * @param {PointerEvent & { currentTarget: HTMLElement }} event
   */
  center(event) {
    if (event.type === "pointerdown") event.currentTarget.setPointerCapture(event.pointerId);
    else if (!event.buttons) return;
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const { whole, isWhole, length } = this.span;
    const all = whole.to - whole.from;
    const middle = whole.from + ((event.clientX - left) / width) * all;
    const half = (isWhole ? all / 8 : length) / 2;
    this.show(middle - half, middle + half);
  }

  // ------------------------------------------------------------------------------------ drawing

  /** Fit the page around the lanes, if they are shown and it has another size; whether it did. */
  fit() {
    const { clientWidth, clientHeight } = document.body;
    const size = `${clientWidth} ${clientHeight}`;
    if (!this.isShown || size === this.fitted) return false;
    this.fitted = size;
    fit();
    return true;
  }

  /** Another view is shown. */
  left() {
    this.fitted = "";
    leaveFit();
  }

  /** Draw what is visible, after the elements are there. */
  draw() {
    this.fit();
    readColours();
    const [map, axis] = ["map", "axis"].map((id) => measured(canvasOf(byId(id))));
    const lanes = this.visibleLanes();
    this.span.width = Math.max(axis.width, 1);
    this.drawMap(map);
    this.drawAxis(axis);
    for (const [lane, canvas] of lanes) this.drawLane(lane, canvas);
  }

  /**
   * The lanes on the screen or close to it, with their canvases.
   *
   * @returns {[Lane, ReturnType<typeof measured>][]}
   */
  visibleLanes() {
    const { top, bottom } = byId("scroll").getBoundingClientRect();
    return [...document.querySelectorAll("#rows .row[data-lane]")].flatMap((row) => {
      const place = row.getBoundingClientRect();
      if (place.bottom < top - 200 || place.top > bottom + 200) return [];
      const lane = this.laneIn(row);
      return lane ? [[lane, measured(canvasOf(row.querySelector("canvas")))]] : [];
    });
  }

  /**
   * @param {Lane} lane
   * @param {ReturnType<typeof measured>} canvas
   */
  drawLane(lane, canvas) {
    const surface = prepared(canvas, this.span);
    if (!surface) return;
    paintActionLines(surface, this.facts.actions);
    lane.paint(surface);
    const { context, height } = surface;
    const links = this.chosen?.links ?? [];
    for (const [index, link] of links.entries()) {
      if (link.lane !== lane.key) continue;
      const same = links.filter((each) => each.lane === link.lane && each.at === link.at);
      const x = this.span.x(link.at) + same.indexOf(link) * 15;
      const colour = this.chosen?.mood === "bad" ? colours.bad : colours.accent;
      paintNumber(context, x, Math.min(13, height / 2), index + 1, colour);
    }
  }

  /** @param {ReturnType<typeof measured>} axis */
  drawAxis(axis) {
    const surface = prepared(axis, this.span);
    if (!surface) return;
    const { context, width, height } = surface;
    const { from, to, began, end } = this.span;
    const step = niceStep(this.span.lasting(84));
    context.textAlign = "center";
    for (let at = Math.ceil((from - began) / step) * step; at <= to - began; at += step) {
      if (at < 0 || at > end - began) continue;
      const x = Math.round(this.span.x(began + at)) + 0.5;
      box(context, x - 0.5, x + 0.5, height - 5, 5, colours.dim);
      context.fillStyle = colours.dim;
      const words = moment(at, digitsOf(step));
      const half = context.measureText(words).width / 2;
      context.fillText(words, Math.min(Math.max(x, half + 1), width - half - 1), 9);
    }
    context.textAlign = "start";
  }

  /**
   * The overview: records as columns, unavailability, actions, and what of the run is in view.
   *
   * @param {ReturnType<typeof measured>} map
   */
  drawMap(map) {
    const { whole, from, to } = this.span;
    const long = whole.to - whole.from;
    const x = (/** @type {number} */ at) => ((at - whole.from) / long) * map.width;
    const surface = prepared(map, { ...whole, x });
    if (!surface) return;
    const { context, width, height } = surface;
    this.paintColumns(context, x, width, height);
    context.globalAlpha = 0.8;
    for (const found of this.facts.windows) {
      const colour = found.kind === "writes" ? colours.bad : colours.warn;
      box(context, x(found.from), x(found.to), height - 4, 4, colour);
    }
    context.globalAlpha = 1;
    for (const { at, mood } of this.facts.actions)
      diamond(context, x(at), 6, 3.5, moodColour(mood));
    const x0 = x(from);
    const x1 = Math.max(x(to), x0 + 2);
    context.globalAlpha = 0.55;
    box(context, 0, x0, 0, height, colours.line);
    if (x1 < width) box(context, x1, width, 0, height, colours.line);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1;
    if (x1 - x0 < width) context.strokeRect(x0 + 0.5, 0.5, x1 - x0 - 1, height - 1);
  }

  /**
   * Records that were acked or read, over time.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {(at: number) => number} x
   * @param {number} width
   * @param {number} height
   */
  paintColumns(context, x, width, height) {
    const wide = 3;
    const hills = new Float64Array(Math.ceil(width / wide) + 1);
    for (const rows of this.facts.clients.flatMap(({ ended, reads }) => [ended, reads])) {
      for (const [at, count] of rows) hills[Math.max(Math.floor(x(at) / wide), 0)] += count;
    }
    const most = Math.sqrt(hills.reduce((top, count) => Math.max(top, count), 1));
    context.fillStyle = colours.gone;
    for (const [place, count] of hills.entries()) {
      const tall = (Math.sqrt(count) / most) * (height - 16);
      context.fillRect(place * wide, height - 4 - tall, wide, tall);
    }
  }

  /** The span in view, in words. */
  get words() {
    const { from, to, began, end, length } = this.span;
    const digits = digitsOf(niceStep(length / 100));
    const first = Math.max(from, began);
    const last = Math.min(to, end);
    const span = `+${moment(first - began, digits)} to +${moment(last - began, digits)}`;
    return `${span} (${lasting(last - first)})`;
  }
}

/**
 * How many digits of a second a step needs.
 *
 * @param {number} step
 */
const digitsOf = (step) => (step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3);

/**
 * @param {HTMLElement} tip
 * @param {MouseEvent} event
 */
function placeTip(tip, { clientX, clientY }) {
  if (tip.hidden) return;
  const { width, height } = tip.getBoundingClientRect();
  const left = clientX + 16 + width < innerWidth ? clientX + 16 : clientX - width - 16;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(Math.min(clientY + 14, innerHeight - height - 6), 4)}px`;
}

/**
 * The number of a link of the selected chain.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} number
 * @param {string} colour
 */
function paintNumber(context, x, y, number, colour) {
  context.fillStyle = colour;
  context.strokeStyle = colours.back;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, 8, 0, Math.PI * 2);
  context.fill();
  context.stroke();
  context.fillStyle = colours.back;
  context.font = `700 ${FONT}`;
  context.textAlign = "center";
  context.fillText(String(number), x, y + 0.5);
  context.textAlign = "start";
  context.font = FONT;
}
