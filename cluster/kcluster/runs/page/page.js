// @ts-check
// The page: state, what its buttons and keys do, and drawing once per frame.

import { byId, h, patch } from "./dom.js";
import { drawHead } from "./head.js";
import { openHelp } from "./help.js";
import { Model } from "./model.js";
import { Time } from "./time.js";
import { tabsOf, viewOf } from "./views.js";

/** @import { Controls } from "./controls.js" */
/** @import { Sound } from "./sound.js" */
/** @import { Facts } from "./timeline/facts.js" */
/** @import { Chosen, Note, ReplayedCard, Rows, Verdict } from "./types.js" */

/** The least time between two drawings of a view in which time passes. */
const MIN_REST_MS = 20;

export class Page {
  /**
   * @param {boolean} isRun whether it carries a run
   * @param {boolean} isComplete whether its rows are all there, so that they are played
   */
  constructor(isRun, isComplete) {
    this.model = new Model();
    this.time = new Time(this.model, isComplete);
    /**
     * What can be asked of the cluster; null if there is none behind the page.
     *
     * @type {Controls | null}
     */
    this.controls = null;
    /**
     * The run that the page carries, once it is unpacked.
     *
     * @type {Facts | null}
     */
    this.facts = null;
    this.allTabs = tabsOf(isRun);
    const wanted = /[#&]view=(\w+)/.exec(location.hash)?.[1];
    this.view = this.allTabs.find(({ key }) => key === wanted)?.key ?? this.allTabs[0].key;
    this.partitionName = "";
    this.client = "";
    /** @type {Chosen | null} */
    this.selected = null;
    this.openNote = "";
    /** @type {Verdict | null} */
    this.verdict = null;
    /** @type {ReplayedCard[]} */
    this.lessons = [];
    this.internal = false;
    /**
     * Of a page with a cluster.
     *
     * @type {Sound | null}
     */
    this.sound = null;
    this.stepping = false;
    /** @type {number[]} */
    this.frames = [];
    this.isDue = false;
    /** Whether the view is drawn in the next frame; if not, only what moves over it. */
    this.isViewDue = true;
    /**
     * When the view was drawn, and how long it then rests: styles, layout and painting take longer
     * than drawing, and what moves over the view is drawn in each frame.
     */
    this.viewDrawn = 0;
    this.rest = 0;
    /** Of the view, in CSS pixels. */
    this.height = 0;
    /** Of the view's legend. */
    this.legendHeight = 66;
    /** @type {number | null} */
    this.lastFrame = null;
    /** Whether something of the run that the page carries is being unpacked. */
    this.isLoading = false;
  }

  get at() {
    return this.time.at;
  }
  get began() {
    return this.time.began;
  }
  /** A recorded run shows its verdict at its end, not before. */
  get isBeforeEnd() {
    return this.time.isComplete && this.at < this.model.until;
  }
  get readOnly() {
    return this.controls === null;
  }
  /** The tabs of views that have something to show; the one that is open stays. */
  get tabs() {
    return this.allTabs.filter(
      ({ key, isNeeded }) => key === this.view || isNeeded?.(this.model) !== false,
    );
  }
  get shownView() {
    return viewOf(this.view);
  }

  get shownPartition() {
    const { partitions } = this.model;
    const [first] = this.model.partitionNames(this.internal);
    return partitions.get(this.partitionName) ?? partitions.get(first) ?? null;
  }

  /**
   * @param {Rows} rows
   * @param {number} until
   */
  rows(rows, until) {
    const isFirst = this.model.began === null;
    this.model.add(rows, until);
    this.time.hear(until, performance.now());
    // The first busy partition is shown until another one is chosen.
    if (!this.partitionName && !this.time.isComplete)
      this.partitionName = this.model.busiest()?.name ?? "";
    if (isFirst && this.time.isComplete)
      this.time.look(momentInAddress(this.model) ?? this.model.began ?? 0);
    // While time passes, the view is drawn soon anyway.
    if (isFirst || !this.time.isRunning) this.redraw();
    else this.nextFrame();
  }

  // ------------------------------------------------------------------------------- looking

  /** @param {number} at */
  look(at) {
    this.time.look(at);
    this.redraw();
  }
  now() {
    this.time.now();
    this.redraw();
  }
  /** @param {Chosen | null} chosen */
  select(chosen) {
    this.selected = chosen;
    this.redraw();
  }
  /** @param {string} name */
  showPartition(name) {
    this.partitionName = name;
    this.show("partition");
  }
  /** @param {string} name */
  showClient(name) {
    this.client = name;
    this.show("client");
  }
  /** @param {string} kind */
  chooseKind(kind) {
    this.time.kind = kind;
    this.redraw();
  }

  /** @param {string} view */
  show(view) {
    this.shownView.left?.();
    this.view = view;
    this.redraw();
    byId("view").scrollTop = 0;
  }

  /** @param {Note} note */
  openEvent(note) {
    this.openNote = this.openNote === note.id ? "" : note.id;
    this.look(note.at);
  }

  // ---------------------------------------------------------------------------------- time

  toggle() {
    if (this.time.isLive) {
      this.controls?.steer(this.time.clock.paused ? { resume: true } : { pause: true });
      return;
    }
    if (!this.time.playing && this.time.isComplete && this.at >= this.model.until)
      this.time.look(this.began);
    this.time.playing = !this.time.playing;
    this.redraw();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    if (this.time.isLive) this.controls?.steer({ speed });
    else this.time.speed = speed;
    this.redraw();
  }

  /** @param {number} direction */
  async step(direction) {
    const note = this.time.isLive && direction > 0 ? null : this.time.next(direction);
    if (note) {
      this.time.playing = false;
      this.openNote = note.id;
      this.look(note.at);
      return;
    }
    if (!this.time.isLive || direction < 0 || this.stepping) return;
    this.stepping = true;
    await this.controls?.steer({ step: this.time.kind });
    this.stepping = false;
    this.redraw();
  }

  // -------------------------------------------------------------------------------- drawing

  /** Draw the view in the next frame, once, however often this is called. */
  redraw() {
    this.isViewDue = true;
    this.nextFrame();
  }

  nextFrame() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    this.isDue = false;
    if (this.isLoading) return;
    if (!this.time.isComplete) this.time.pass(performance.now());
    if (this.time.playing) this.time.advance(Math.min(now - (this.lastFrame ?? now), 250));
    this.lastFrame = this.time.playing ? now : null;
    const began = performance.now();
    const { isRunning } = this.time;
    if (this.isViewDue || (isRunning && began >= this.viewDrawn + this.rest)) {
      this.drawView();
      this.viewDrawn = began;
      const took = performance.now() - began;
      this.rest = Math.max(MIN_REST_MS, 8 * took);
      this.frames.push(took);
      if (this.frames.length > 600) this.frames.splice(0, 300);
    }
    this.sound?.play(this);
    const isMoving = this.shownView.drawn?.(this) ?? false;
    if (isRunning || isMoving) this.nextFrame();
  }

  drawView() {
    this.isViewDue = false;
    document.body.classList.add("drawn");
    drawHead(this);
    const view = byId("view");
    for (const { key } of this.allTabs) {
      document.body.classList.toggle(`of-${key}`, key === this.view);
    }
    view.setAttribute("aria-labelledby", `tab-${this.view}`);
    const { above, side, below, bar } = this.shownView;
    patch(byId("above"), above?.(this) ?? []);
    patch(byId("below"), below?.(this) ?? []);
    patch(byId("time"), bar?.(this) ?? []); // the view has the height that it leaves
    patch(view, [h("div", { key: this.view, class: `view ${this.view}` }, this.viewTree())]);
    byId("side").classList.toggle(
      "needed",
      this.controls?.lesson != null ||
        this.lessons.length > 0 ||
        this.selected !== null ||
        this.openNote !== "" ||
        (this.verdict !== null && !this.isBeforeEnd),
    );
    patch(byId("side"), side?.(this) ?? []);
  }

  viewTree() {
    if (this.model.began === null)
      return [
        h(
          "p",
          { class: "dim" },
          this.controls?.linkState === "lost"
            ? "The cluster does not answer."
            : "Waiting for the cluster.",
        ),
      ];
    return this.shownView.tree(this);
  }

  // --------------------------------------------------------------------------------- modes

  toggleProjector() {
    document.body.classList.toggle("projector");
    this.redraw();
  }
  toggleSound() {
    this.sound?.toggle();
    this.redraw();
  }
  toggleTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    this.redraw();
  }

  /** @param {KeyboardEvent} event */
  moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.nextView(step);
    byId(`tab-${this.view}`).focus();
  }

  /** @param {number} step */
  nextView(step) {
    const { tabs } = this;
    const place = tabs.findIndex(({ key }) => key === this.view);
    this.show(tabs[(place + step + tabs.length) % tabs.length].key);
    this.drawView();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
      return;
    const { target } = event;
    if (!(target instanceof Element)) return;
    if (target.matches("input, select, textarea")) return;
    // Space freezes the cluster, whatever was clicked before; Enter opens it.
    if (event.key === "Enter" && target.matches("button, [role=button]")) return;
    /** @type {{ [key: string]: () => void }} */
    const actions = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      l: () => this.now(),
      v: () => this.nextView(1),
      f: () => this.controls?.openFork(),
      k: () => this.controls?.knobs.toggle(),
      p: () => this.toggleProjector(),
      d: () => this.toggleTheme(),
      s: () => this.toggleSound(),
      "?": () => openHelp(this),
      q: () => {
        if (!this.time.isComplete) this.controls?.togglePredict();
      },
      Escape: () => this.select(null),
    };
    const action = /^[1-9]$/.test(event.key)
      ? () => this.controls?.keyBroker(Number(event.key))
      : (this.shownView.keys?.(this)[event.key] ??
        actions[event.key.length === 1 ? event.key.toLowerCase() : event.key]);
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/**
 * `#t=1200`: the moment since the start that a complete record opens at.
 *
 * @param {Model} model
 */
export function momentInAddress(model) {
  const found = /[#&]t=(\d+)/.exec(location.hash);
  return found ? (model.began ?? 0) + Number(found[1]) : null;
}

/**
 * Let the browser's events reach a page, and draw it.
 *
 * @param {Page} page
 */
export function start(page) {
  Object.assign(window, { kclusterPage: page });
  addEventListener("keydown", (event) => page.key(event));
  // Firefox presses a button when the key is released.
  addEventListener("keyup", (event) => {
    const isOpen = document.querySelector("dialog[open], .menu") !== null;
    const isButton = event.target instanceof Element && event.target.matches("button");
    if (event.key === " " && isButton && !isOpen) event.preventDefault();
  });
  addEventListener("resize", () => page.redraw());
  page.redraw();
}
