// @ts-check
// The page: state, what its buttons and keys do, and drawing once per frame.

import { actionText, brokerActions, linkActions, openMenu, partitionActions } from "./actions.js";
import { rowsOf, unpacked } from "./carried.js";
import { addressOf, Connection, Refusal } from "./connection.js";
import { askQuestions, openClients, openForkDialog, openHelp } from "./dialogs.js";
import { button, byId, h, patch } from "./dom.js";
import { flightsOf, fly } from "./flights.js";
import { drawHead } from "./head.js";
import { Model } from "./model.js";
import { sideTree } from "./side.js";
import { Time, timeBar } from "./time.js";
import { Facts } from "./timeline/facts.js";
import { viewsOf } from "./views.js";

/** @import { Partition } from "./model.js" */
/** @import { Action, ActionItem, Carried, Chosen, ClockState, Fork, Future, FutureAnswer, LessonCard, Note, Prediction, Question, QuestionsAnswer, Rows, Verdict } from "./types.js" */

const PREDICTION_MS = 20_000;
const MAX_QUESTIONS = 3;
/** What answers a prediction when it happens. */
const SETTLING = new Set(["leader_elected", "partition_offline", "isr_shrunk", "isr_expanded"]);

export class Page {
  constructor() {
    this.model = new Model();
    const address = addressOf(location);
    const packed = byId("carried").textContent;
    /** What only other views than the timeline draw, until one of them is opened. */
    this.later = byId("later").textContent;
    /**
     * The run that the page carries, once it is unpacked.
     *
     * @type {Facts | null}
     */
    this.facts = null;
    this.time = new Time(this.model, packed !== "" || address?.id === "play");
    this.connection = packed === "" && address ? new Connection(address, this) : null;
    this.readOnly = this.connection === null;
    this.views = viewsOf(packed !== "");
    const wanted = /[#&]view=(\w+)/.exec(location.hash)?.[1];
    this.view = this.views.find(({ key }) => key === wanted)?.key ?? this.views[0].key;
    this.partitionName = "";
    this.client = "";
    /** @type {Chosen | null} */
    this.selected = null;
    this.openNote = "";
    /** @type {Verdict | null} */
    this.verdict = null;
    /** @type {LessonCard | null} */
    this.lesson = null;
    this.internal = false;
    this.predicts = false;
    /** @type {Fork | null} */
    this.open = null;
    this.stepping = false;
    this.hasAskedVerdict = false;
    this.linkState = "connecting";
    /** @type {Prediction | null} */
    this.prediction = null;
    /** @type {number[]} */
    this.frames = [];
    /** @type {{ at: number, partition: Partition | null }} */
    this.drawn = { at: 0, partition: null };
    this.isDue = false;
    /** Of the view, in CSS pixels. */
    this.height = 0;
    /** @type {number | null} */
    this.lastFrame = null;
    /** Whether the run that the page carries is being unpacked. */
    this.isLoading = packed !== "";
    /** Settled once the page shows its run. */
    this.ready = this.isLoading ? this.load(packed) : Promise.resolve();
  }

  /**
   * Show the run that the page carries.
   *
   * @param {string} packed
   */
  async load(packed) {
    /** @type {Carried} */
    const carried = await unpacked(packed);
    Object.assign(this.model, { began: carried.run.began, isWhole: true });
    this.rows(rowsOf(carried.tables), carried.run.end);
    this.time.look(momentInAddress(this.model) ?? carried.run.began);
    this.verdict = carried.verdict;
    this.facts = new Facts(this.model, carried);
    if (!this.shownView.forRuns) await this.loadLater();
    this.isLoading = false;
  }

  /** Add what the timeline does not draw; once. */
  async loadLater() {
    const packed = this.later;
    this.later = "";
    if (packed) this.rows(rowsOf(await unpacked(packed)), this.model.until);
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
  get shownView() {
    return this.views.find(({ key }) => key === this.view) ?? this.views[0];
  }

  get shownPartition() {
    const { partitions } = this.model;
    const [first] = this.model.partitionNames(this.internal);
    return partitions.get(this.partitionName) ?? partitions.get(first) ?? null;
  }

  // ------------------------------------------------------------------------ from the stream

  /**
   * @param {Rows} rows
   * @param {number} until
   */
  rows(rows, until) {
    const isFirst = this.model.began === null;
    this.model.add(rows, until);
    if (isFirst && this.time.isComplete)
      this.time.look(momentInAddress(this.model) ?? this.model.began ?? 0);
    this.checkPrediction();
    this.redraw();
  }

  /** @param {ClockState} state */
  clock(state) {
    this.time.clock = { ...this.time.clock, ...state };
    if (state.complete && !this.time.isComplete) this.time.isComplete = true;
    if (this.time.isComplete && this.connection && !this.hasAskedVerdict) this.askVerdict();
    // A quiet cluster sends no rows; its clock goes on.
    if (this.model.began !== null) this.model.until = Math.max(this.model.until, state.now_ms ?? 0);
    this.redraw();
  }

  /** @param {Verdict} verdict */
  setVerdict(verdict) {
    this.verdict = verdict;
    this.redraw();
  }

  /** @param {LessonCard} card */
  setLesson(card) {
    this.lesson = card;
    this.redraw();
  }

  /** @param {string} state */
  state(state) {
    this.linkState = state;
    this.redraw();
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
    if (this.later && !this.shownView.forRuns) this.ready = this.complete();
    this.redraw();
    byId("view").scrollTop = 0;
  }

  /** Draw again when all rows are there. */
  async complete() {
    this.isLoading = true;
    await this.loadLater();
    this.isLoading = false;
    this.redraw();
  }

  /** @param {Note} note */
  openEvent(note) {
    this.openNote = this.openNote === note.id ? "" : note.id;
    this.look(note.at);
  }

  // ---------------------------------------------------------------------------------- time

  toggle() {
    if (this.time.isLive) {
      this.steer(this.time.clock.paused ? { resume: true } : { pause: true });
      return;
    }
    if (!this.time.playing && this.time.isComplete && this.at >= this.model.until)
      this.time.look(this.began);
    this.time.playing = !this.time.playing;
    this.redraw();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    if (this.time.isLive) this.steer({ speed });
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
    await this.steer({ step: this.time.kind });
    this.stepping = false;
    this.redraw();
  }

  /** @param {{ [name: string]: unknown }} change */
  async steer(change) {
    await this.attempt(async () => this.clock(await this.ask("POST", "/clock", change)));
  }

  // ------------------------------------------------------------------------------- actions

  /**
   * The server's answer; a Refusal is thrown.  Pages of recorded runs offer nothing that asks.
   *
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   */
  ask(method, path, body) {
    if (!this.connection) throw new Refusal(0, { detail: "There is no cluster behind this page" });
    return this.connection.ask(method, path, body);
  }

  /**
   * Call the server; a refusal is shown.
   *
   * @param {() => Promise<unknown>} work
   */
  async attempt(work) {
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.alert(error.message);
      return false;
    }
  }

  /** @param {string} text */
  alert(text) {
    const place = byId("alert");
    patch(
      place,
      text
        ? [
            h("span", null, text),
            button("×", () => this.alert(""), { class: "close", "aria-label": "Dismiss" }),
          ]
        : [],
    );
    place.hidden = !text;
  }

  /**
   * @param {ActionItem[]} actions
   * @returns {[string, () => void][]}
   */
  items(actions) {
    if (this.time.isComplete) {
      return actions.map(([words, action]) => [
        `What if: ${words}`,
        () => this.openFork(words, action),
      ]);
    }
    return actions.map(([words, action]) => [words, () => this.act(action)]);
  }

  get menuNote() {
    if (this.time.isComplete) return "a recorded run: played as a second future";
    if (!this.time.isLive) return "acts now, not at the moment shown";
    return this.time.clock.paused ? "takes effect in the frozen moment" : "";
  }

  /**
   * @param {{ currentTarget: Element }} event
   * @param {number} id
   */
  brokerMenu(event, id) {
    const moment = this.time.isComplete ? this.at : this.model.until;
    openMenu(
      event,
      `Broker ${id}`,
      this.items(brokerActions(id, this.model.processAt(id, moment).state)),
      this.menuNote,
    );
  }

  /**
   * @param {{ currentTarget: Element }} event
   * @param {number} a
   * @param {number} b
   */
  linkMenu(event, a, b) {
    openMenu(event, `Link ${a} – ${b}`, this.items(linkActions(a, b)), this.menuNote);
  }

  /**
   * @param {{ currentTarget: Element }} event
   * @param {Partition} partition
   */
  partitionMenu(event, partition) {
    const moment = this.time.isComplete ? this.at : this.model.until;
    const registration = this.model.registrationAt(partition, moment);
    const actions = registration ? partitionActions(partition, registration) : [];
    openMenu(event, partition.name, this.items(actions), this.menuNote);
  }

  /** @param {Action} action */
  async act(action) {
    if (!this.time.isLive) this.now();
    this.alert("");
    if (this.predicts) await this.actAfterQuestions(action);
    else await this.perform(action);
    this.redraw();
  }

  /** @param {Action} action */
  perform(action) {
    return this.attempt(() => this.ask("POST", "/actions?wait=no", action));
  }

  /**
   * The cluster is frozen while people think, so that the answers hold.
   *
   * @param {Action} action
   */
  async actAfterQuestions(action) {
    const wasPaused = this.time.clock.paused;
    if (!wasPaused) await this.steer({ pause: true });
    const questions = await this.questions(action);
    const answers = questions.length ? await askQuestions(questions, actionText(action)) : [];
    if (answers !== null && (await this.perform(action)) && answers.length)
      this.predicted(questions, answers);
    if (!wasPaused) await this.steer({ resume: true });
  }

  /** @param {number} index */
  keyBroker(index) {
    const ids = [...this.model.brokers.keys()].filter((id) => id !== this.model.controllerNode);
    const id = ids.includes(index) ? index : ids[index - 1];
    if (id === undefined || this.readOnly) return;
    const { state } = this.model.processAt(id, this.time.isComplete ? this.at : this.model.until);
    const [[words, action]] = brokerActions(id, state);
    if (this.time.isComplete) this.openFork(words, action);
    else this.act(action);
  }

  // ------------------------------------------------------------------------------- predict

  /**
   * @param {Action} action
   * @returns {Promise<Question[]>}
   */
  async questions(action) {
    const query = new URLSearchParams({ action: JSON.stringify(action), answers: "true" });
    /** @type {Question[]} */
    let found = [];
    await this.attempt(async () => {
      found = questionsOf(await this.ask("GET", `/predictions?${query}`));
    });
    const shown = this.shownPartition?.name;
    const isShown = (/** @type {Question} */ { partition }) => partition === shown;
    return [...found.filter(isShown), ...found.filter((each) => !isShown(each))].slice(
      0,
      MAX_QUESTIONS,
    );
  }

  /**
   * @param {Question[]} questions
   * @param {number[]} answers
   */
  predicted(questions, answers) {
    this.prediction = { questions, answers, since: this.model.until, isOpen: true };
  }

  /** What was predicted is shown once it has happened, or has not within a while. */
  checkPrediction() {
    const { prediction, model } = this;
    if (!prediction?.isOpen) return;
    const found = model
      .storyUntil(model.until, 60)
      .some((each) => each.at >= prediction.since && SETTLING.has(each.kind));
    if (found || model.until - prediction.since > PREDICTION_MS) prediction.isOpen = false;
  }

  // ---------------------------------------------------------------------- forks and clients

  /**
   * @param {string} [words]
   * @param {Action | null} [action]
   */
  openFork(words = "", action = null) {
    if (this.readOnly) return;
    this.open = { at: Math.round(this.at), words, action, shown: Math.round(this.at) };
    openForkDialog(this, this.open);
  }

  /**
   * @param {ActionItem} choice
   * @param {string} span
   */
  async fork([words, action], span) {
    if (!this.open) return;
    const { at } = this.open;
    /** @type {Fork} */
    const state = { at, words, action, shown: at, busy: true };
    this.open = state;
    openForkDialog(this, state);
    try {
      const body = { at_ms: state.at, actions: [action], for: span };
      const answer = await this.ask("POST", "/forks", body);
      state.moment = answer.at_ms;
      state.futures = {
        here: futureOf(answer.here),
        there: futureOf(answer.there),
        assumptions: answer.assumptions,
      };
      state.shown = Math.max(state.futures.here.model.until, state.futures.there.model.until);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      state.error = error.message;
    }
    state.busy = false;
    if (this.open === state) openForkDialog(this, state);
  }

  async openClientsDialog() {
    await this.attempt(async () => {
      const answer = await this.ask("GET", "/clients");
      openClients(this, answer.clients);
    });
  }

  /** @param {{ [kind: string]: unknown }} spec */
  async startClient(spec) {
    if (await this.attempt(() => this.ask("POST", "/clients", spec)))
      await this.openClientsDialog();
  }

  /** @param {string} name */
  async stopClient(name) {
    if (await this.attempt(() => this.ask("DELETE", `/clients/${encodeURIComponent(name)}`)))
      await this.openClientsDialog();
  }

  async askVerdict() {
    this.hasAskedVerdict = true;
    await this.attempt(async () => this.setVerdict(await this.ask("GET", "/verdict")));
  }

  // -------------------------------------------------------------------------------- drawing

  /** Draw in the next frame, once, however often this is called. */
  redraw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    this.isDue = false;
    if (this.isLoading) return;
    const began = performance.now();
    if (this.time.playing) this.time.advance(Math.min(now - (this.lastFrame ?? now), 250));
    this.lastFrame = this.time.playing ? now : null;
    drawHead(this);
    const view = byId("view");
    for (const { key } of this.views) {
      document.body.classList.toggle(`of-${key}`, key === this.view);
    }
    const width = view.clientWidth - 28;
    this.height = view.clientHeight;
    view.setAttribute("aria-labelledby", `tab-${this.view}`);
    patch(byId("above"), this.shownView.above?.(this) ?? []);
    patch(byId("below"), this.shownView.below?.(this) ?? []);
    patch(view, [h("div", { key: this.view, class: `view ${this.view}` }, this.viewTree(width))]);
    byId("side").classList.toggle(
      "needed",
      this.lesson !== null ||
        this.selected !== null ||
        this.openNote !== "" ||
        (this.verdict !== null && !this.isBeforeEnd),
    );
    patch(byId("side"), this.shownView.side?.(this) ?? sideTree(this));
    patch(byId("time"), this.shownView.forRuns ? [] : timeBar(this, this.time));
    this.shownView.drawn?.(this);
    this.drawFlights();
    this.frames.push(performance.now() - began);
    if (this.frames.length > 600) this.frames.splice(0, 300);
    if (this.time.playing) this.redraw();
  }

  /** @param {number} width */
  viewTree(width) {
    if (this.model.began === null)
      return [
        h(
          "p",
          { class: "dim" },
          this.linkState === "lost" ? "The cluster does not answer." : "Waiting for the cluster.",
        ),
      ];
    return this.shownView.tree(this, width);
  }

  drawFlights() {
    const partition = this.shownPartition;
    const { at, drawn } = this;
    if (
      partition &&
      drawn.partition === partition &&
      at > drawn.at &&
      at - drawn.at < 2000 &&
      (this.view === "partition" || this.view === "cluster")
    ) {
      fly(flightsOf(this.model, partition, drawn.at, at));
    }
    this.drawn = { at, partition };
  }

  // --------------------------------------------------------------------------------- modes

  toggleProjector() {
    document.body.classList.toggle("projector");
    this.redraw();
  }
  togglePredict() {
    this.predicts = !this.predicts;
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
    const place = this.views.findIndex(({ key }) => key === this.view);
    this.show(this.views[(place + step + this.views.length) % this.views.length].key);
    this.draw(performance.now());
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
      return;
    const { target } = event;
    if (!(target instanceof Element)) return;
    if (target.matches("input, select, textarea")) return;
    if ((event.key === " " || event.key === "Enter") && target.matches("button, [role=button]"))
      return;
    /** @type {{ [key: string]: () => void }} */
    const actions = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      l: () => this.now(),
      v: () => this.nextView(1),
      f: () => this.openFork(),
      p: () => this.toggleProjector(),
      d: () => this.toggleTheme(),
      "?": () => openHelp(this),
      q: () => {
        if (!this.readOnly && !this.time.isComplete) this.togglePredict();
      },
      Escape: () => this.select(null),
    };
    const action = /^[1-9]$/.test(event.key)
      ? () => this.keyBroker(Number(event.key))
      : (this.shownView.keys?.(this)[event.key] ??
        actions[event.key.length === 1 ? event.key.toLowerCase() : event.key]);
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/**
 * A future as the server answers it: its rows are on the clock of the run that was played.
 *
 * @param {FutureAnswer} future
 * @returns {Future}
 */
function futureOf({ rows, verdict, until_ms: until, problems }) {
  const model = new Model();
  model.add(rows, until);
  return { model, verdict, problems };
}

/**
 * The questions of the server: texts, choices and the index of the right answer.
 *
 * @param {QuestionsAnswer} answer
 * @returns {Question[]}
 */
function questionsOf({ questions }) {
  return questions.map(({ text, partition, choices, answer, reason }) => ({
    text,
    partition,
    reason,
    choices: choices.map((each) => each.text),
    answer: choices.findIndex((each) => String(each.value) === String(answer)),
  }));
}

/**
 * `#t=1200`: the moment since the start that a complete record opens at.
 *
 * @param {Model} model
 */
function momentInAddress(model) {
  const found = /[#&]t=(\d+)/.exec(location.hash);
  return found ? (model.began ?? 0) + Number(found[1]) : null;
}
