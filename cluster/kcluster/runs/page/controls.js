// @ts-check
// What can be asked of the cluster behind the page: actions, its clock, predictions, forks, clients.

import { actionText, brokerActions, linkActions, openMenu, partitionActions } from "./actions.js";
import { Connection, Refusal } from "./connection.js";
import { askQuestions, openClients, openForkDialog } from "./dialogs.js";
import { button, byId, h, patch } from "./dom.js";
import { firstTree, topicButton } from "./first.js";
import { Knobs, knobsTree } from "./knobs.js";
import { lessonTree } from "./lesson.js";
import { Model } from "./model.js";

/** @import { Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Action, ActionItem, Address, ClockState, Fork, Future, FutureAnswer, Inside, LessonCard, Prediction, Question, QuestionsAnswer, Rows, Verdict } from "./types.js" */

const PREDICTION_MS = 20_000;
const MAX_QUESTIONS = 3;
/** What answers a prediction when it happens. */
const SETTLING = new Set(["leader_elected", "partition_offline", "isr_shrunk", "isr_expanded"]);

export class Controls {
  /**
   * @param {Page} page
   * @param {Address} address
   */
  constructor(page, address) {
    this.page = page;
    this.connection = new Connection(address, this);
    this.linkState = "connecting";
    this.hasAskedVerdict = false;
    /** @type {LessonCard | null} */
    this.lesson = null;
    this.predicts = false;
    /** @type {Prediction | null} */
    this.prediction = null;
    /** @type {Fork | null} */
    this.open = null;
    this.knobs = new Knobs(this);
    this.connection.open();
  }

  // -------------------------------------------------------------------- its places on the page

  /** In the head. */
  buttons() {
    const { isComplete } = this.page.time;
    return [
      isComplete
        ? null
        : [
            topicButton(this),
            button("Clients…", () => this.openClientsDialog(), { id: "start-clients" }),
          ],
      button("Verdict", () => this.askVerdict(), { id: "ask-verdict" }),
      isComplete
        ? null
        : button("Predict", () => this.togglePredict(), {
            id: "ask-first",
            "aria-pressed": String(this.predicts),
            title: "Q: questions before each action",
          }),
    ];
  }

  /**
   * A lost connection, or else a prediction, in the place of the newest event; null: neither.
   *
   * @returns {Inside[] | null}
   */
  newest() {
    if (this.linkState === "lost")
      return [h("b", { class: "bad-text" }, "The cluster does not answer; trying again.")];
    return this.prediction ? predictionTree(this, this.prediction) : null;
  }

  /** In place of a partition, if there is no topic. */
  first() {
    return firstTree(this);
  }

  /** At the side: the lesson. */
  side() {
    return this.lesson ? lessonTree(this.lesson, this) : null;
  }

  /** Above the tools of the bar of time: other values of parameters. */
  other() {
    return knobsTree(this.knobs);
  }

  // ------------------------------------------------------------------------ from the stream

  /**
   * @param {Rows} rows
   * @param {number} until
   */
  rows(rows, until) {
    this.page.rows(rows, until);
    this.checkPrediction();
  }

  /** @param {ClockState} state */
  clock(state) {
    this.page.time.clock = { ...this.page.time.clock, ...state };
    if (state.complete && !this.page.time.isComplete) this.page.time.isComplete = true;
    if (this.page.time.isComplete && !this.hasAskedVerdict) this.askVerdict();
    if (this.page.model.began !== null) {
      this.page.time.hear(state.now_ms ?? 0, performance.now());
      if (state.paused) this.page.model.until = Math.max(this.page.model.until, state.now_ms ?? 0);
    }
    this.page.redraw();
  }

  /** @param {Verdict} verdict */
  setVerdict(verdict) {
    // The stream's verdicts lack the manners of clients, which were asked for.
    this.page.verdict = { manners: this.page.verdict?.manners, ...verdict };
    this.page.redraw();
  }

  /** @param {LessonCard} card */
  setLesson(card) {
    this.lesson = card;
    this.page.redraw();
  }

  /**
   * The class's answer, in place of the terminal; null: go on without one.
   *
   * @param {number | null} choice
   */
  async answerLesson(choice) {
    await this.attempt(() => this.ask("POST", "/lesson", { choice }));
  }

  /** Of the run so far, as one file. */
  get replayAddress() {
    const { base, token } = this.connection.address;
    return `${base}/timeline.html?${new URLSearchParams({ token: token ?? "" })}`;
  }

  /** @param {string} state */
  state(state) {
    this.linkState = state;
    this.page.redraw();
  }

  // ------------------------------------------------------------------------------- actions

  /** @param {{ [name: string]: unknown }} change */
  async steer(change) {
    await this.attempt(async () => this.clock(await this.ask("POST", "/clock", change)));
  }

  togglePredict() {
    this.predicts = !this.predicts;
    this.page.redraw();
  }

  /**
   * The server's answer; a Refusal is thrown.
   *
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   */
  ask(method, path, body) {
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
      this.alert("");
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
    if (this.page.time.isComplete) {
      return actions.map(([words, action]) => [
        `What if: ${words}`,
        () => this.openFork(words, action),
      ]);
    }
    return actions.map(([words, action]) => [words, () => this.act(action)]);
  }

  get menuNote() {
    if (this.page.time.isComplete) return "a recorded run: played as a second future";
    if (!this.page.time.isLive) return "acts now, not at the moment shown";
    return this.page.time.clock.paused ? "takes effect in the frozen moment" : "";
  }

  /**
   * @param {{ currentTarget: Element }} event
   * @param {number} id
   */
  brokerMenu(event, id) {
    const moment = this.page.time.isComplete ? this.page.at : this.page.model.until;
    openMenu(
      event,
      `Broker ${id}`,
      this.items(brokerActions(id, this.page.model.processAt(id, moment).state)),
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
    const moment = this.page.time.isComplete ? this.page.at : this.page.model.until;
    const registration = this.page.model.registrationAt(partition, moment);
    const actions = registration ? partitionActions(partition, registration) : [];
    openMenu(event, partition.name, this.items(actions), this.menuNote);
  }

  /** @param {Action} action */
  async act(action) {
    if (!this.page.time.isLive) this.page.now();
    this.alert("");
    if (this.predicts) await this.actAfterQuestions(action);
    else await this.perform(action);
    this.page.redraw();
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
    const wasPaused = this.page.time.clock.paused;
    if (!wasPaused) await this.steer({ pause: true });
    const questions = await this.questions(action);
    const answers = questions.length ? await askQuestions(questions, actionText(action)) : [];
    if (answers !== null && (await this.perform(action)) && answers.length)
      this.predicted(questions, answers);
    if (!wasPaused) await this.steer({ resume: true });
  }

  /** @param {number} index */
  keyBroker(index) {
    const ids = [...this.page.model.brokers.keys()].filter(
      (id) => id !== this.page.model.controllerNode,
    );
    const id = ids.includes(index) ? index : ids[index - 1];
    if (id === undefined) return;
    const { state } = this.page.model.processAt(
      id,
      this.page.time.isComplete ? this.page.at : this.page.model.until,
    );
    const [[words, action]] = brokerActions(id, state);
    if (this.page.time.isComplete) this.openFork(words, action);
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
    const shown = this.page.shownPartition?.name;
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
    this.prediction = { questions, answers, since: this.page.model.until, isOpen: true };
  }

  /** What was predicted is shown once it has happened, or has not within a while. */
  checkPrediction() {
    const { prediction } = this;
    const { model } = this.page;
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
    this.open = { at: Math.round(this.page.at), words, action, shown: Math.round(this.page.at) };
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
        difference: answer.difference,
        assumptions: answer.assumptions,
      };
      state.shown = answer.at_ms + answer.facts.for_ms; // then the futures come to rest
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
    await this.attempt(async () => this.setVerdict(await this.ask("GET", "/verdict?manners=true")));
  }
}

/**
 * What was predicted and, once it has happened, who was right.
 *
 * @param {Controls} controls
 * @param {Prediction} prediction
 */
function predictionTree(controls, { questions, answers, isOpen }) {
  return [
    button(
      "×",
      () => {
        controls.prediction = null;
        controls.page.redraw();
      },
      { class: "close", "aria-label": "Dismiss" },
    ),
    questions.slice(0, answers.length).map(({ text, choices, answer, reason }, index) => {
      const isRight = answers[index] === answer;
      return h(
        "span",
        { key: index, class: `line ${isOpen ? "" : isRight ? "good-text" : "bad-text"}` },
        `${text} You said: ${choices[answers[index]]}. `,
        isOpen
          ? "Watch…"
          : isRight
            ? `✓ Right. ${reason}`
            : `✗ Answer: ${choices[answer]}. ${reason}`,
      );
    }),
  ];
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
