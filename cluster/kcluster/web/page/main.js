// The page: state, what its buttons and keys do, and drawing once per frame.

const PREDICTION_MS = 20_000;
const MAX_QUESTIONS = 3;
/** What answers a prediction when it happens. */
const SETTLING = new Set(["leader_elected", "partition_offline", "isr_shrunk", "isr_expanded"]);

class Page {
  constructor() {
    this.model = new Model();
    const address = addressOf(location);
    const carried = JSON.parse(byId("record").textContent);
    this.time = new Time(this.model, carried !== null || address?.id === "play");
    this.connection = carried === null && address ? new Connection(address, this) : null;
    this.readOnly = this.connection === null;
    this.view = "partition";
    this.partitionName = "";
    this.client = "";
    this.selected = null;
    this.openNote = "";
    this.verdict = null;
    this.lesson = null;
    this.internal = false;
    this.predicts = false;
    this.open = null;
    this.stepping = false;
    this.hasAskedVerdict = false;
    this.linkState = "connecting";
    this.prediction = null;
    this.frames = [];
    this.drawn = { at: null, partition: null };
    this.isDue = false;
    if (carried) {
      this.rows(carried.rows, carried.until_ms);
      this.verdict = carried.verdict ?? null;
    }
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
  /** What views need of the page, without actions. */
  get plain() {
    return { at: this.at, began: this.began, readOnly: true, internal: this.internal };
  }

  get shownPartition() {
    const { partitions } = this.model;
    if (partitions.has(this.partitionName)) return partitions.get(this.partitionName);
    return partitionNames(this.model, this.internal).map((name) => partitions.get(name))[0] ?? null;
  }

  // ------------------------------------------------------------------------ from the stream

  rows(rows, until) {
    const isFirst = this.model.began === null;
    this.model.add(rows, until);
    if (isFirst && this.time.isComplete)
      this.time.look(momentInAddress(this.model) ?? this.model.began ?? 0);
    this.checkPrediction();
    this.redraw();
  }

  clock(state) {
    this.time.clock = { ...this.time.clock, ...state };
    if (state.complete && !this.time.isComplete) this.time.isComplete = true;
    if (this.time.isComplete && this.connection && !this.hasAskedVerdict) this.askVerdict();
    // A quiet cluster sends no rows; its clock goes on.
    if (this.model.began !== null) this.model.until = Math.max(this.model.until, state.now_ms ?? 0);
    this.redraw();
  }

  setVerdict(verdict) {
    this.verdict = verdict;
    this.redraw();
  }

  setLesson(card) {
    this.lesson = card;
    this.redraw();
  }

  state(state) {
    this.linkState = state;
    this.redraw();
  }

  // ------------------------------------------------------------------------------- looking

  look(at) {
    this.time.look(at);
    this.redraw();
  }
  now() {
    this.time.now();
    this.redraw();
  }
  select(chosen) {
    this.selected = chosen;
    this.redraw();
  }
  showPartition(name) {
    this.partitionName = name;
    this.show("partition");
  }
  showClient(name) {
    this.client = name;
    this.show("client");
  }
  chooseKind(kind) {
    this.time.kind = kind;
    this.redraw();
  }

  show(view) {
    this.view = view;
    this.redraw();
    byId("view").scrollTop = 0;
  }

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

  setSpeed(speed) {
    if (this.time.isLive) this.steer({ speed });
    else this.time.speed = speed;
    this.redraw();
  }

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

  async steer(change) {
    await this.attempt(async () => this.clock(await this.connection.ask("POST", "/clock", change)));
  }

  // ------------------------------------------------------------------------------- actions

  /** Call the server; a refusal is shown. */
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

  brokerMenu(event, id) {
    const moment = this.time.isComplete ? this.at : this.model.until;
    openMenu(
      event,
      `Broker ${id}`,
      this.items(brokerActions(id, this.model.processAt(id, moment).state)),
      this.menuNote,
    );
  }

  linkMenu(event, a, b) {
    openMenu(event, `Link ${a} – ${b}`, this.items(linkActions(a, b)), this.menuNote);
  }

  partitionMenu(event, partition) {
    const registration = this.model.registrationAt(
      partition,
      this.time.isComplete ? this.at : this.model.until,
    );
    openMenu(
      event,
      partition.name,
      this.items(partitionActions(partition, registration)),
      this.menuNote,
    );
  }

  async act(action) {
    if (!this.time.isLive) this.now();
    this.alert("");
    if (this.predicts) await this.actAfterQuestions(action);
    else await this.perform(action);
    this.redraw();
  }

  perform(action) {
    return this.attempt(() => this.connection.ask("POST", "/actions?wait=no", action));
  }

  /** The cluster is frozen while people think, so that the answers hold. */
  async actAfterQuestions(action) {
    const wasPaused = this.time.clock.paused;
    if (!wasPaused) await this.steer({ pause: true });
    const questions = await this.questions(action);
    const answers = questions.length ? await askQuestions(questions, actionText(action)) : [];
    if (answers !== null && (await this.perform(action)) && answers.length)
      this.predicted(questions, answers);
    if (!wasPaused) await this.steer({ resume: true });
  }

  keyBroker(index) {
    const ids = [...this.model.brokers.keys()].filter((id) => id !== controllerNode(this.model));
    const id = ids.includes(index) ? index : ids[index - 1];
    if (id === undefined || this.readOnly) return;
    const { state } = this.model.processAt(id, this.time.isComplete ? this.at : this.model.until);
    const [[words, action]] = brokerActions(id, state);
    if (this.time.isComplete) this.openFork(words, action);
    else this.act(action);
  }

  // ------------------------------------------------------------------------------- predict

  async questions(action) {
    const query = new URLSearchParams({ action: JSON.stringify(action), answers: "true" });
    let found = [];
    await this.attempt(async () => {
      found = questionsOf(await this.connection.ask("GET", `/predictions?${query}`));
    });
    const shown = this.shownPartition?.name;
    const isShown = ({ partition }) => partition === shown;
    return [...found.filter(isShown), ...found.filter((each) => !isShown(each))].slice(
      0,
      MAX_QUESTIONS,
    );
  }

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

  openFork(words = "", action = null) {
    if (this.readOnly) return;
    this.open = { at: Math.round(this.at), words, action, shown: Math.round(this.at) };
    openForkDialog(this, this.open);
  }

  async fork([words, action], span) {
    const state = (this.open = {
      at: this.open.at,
      words,
      action,
      shown: this.open.at,
      busy: true,
    });
    openForkDialog(this, state);
    try {
      const body = { at_ms: state.at, actions: [action], for: span };
      const answer = await this.connection.ask("POST", "/forks", body);
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
      const answer = await this.connection.ask("GET", "/clients");
      openClients(this, answer.clients);
    });
  }

  async startClient(spec) {
    if (await this.attempt(() => this.connection.ask("POST", "/clients", spec)))
      await this.openClientsDialog();
  }

  async stopClient(name) {
    if (
      await this.attempt(() =>
        this.connection.ask("DELETE", `/clients/${encodeURIComponent(name)}`),
      )
    )
      await this.openClientsDialog();
  }

  async askVerdict() {
    this.hasAskedVerdict = true;
    await this.attempt(async () => this.setVerdict(await this.connection.ask("GET", "/verdict")));
  }

  // -------------------------------------------------------------------------------- drawing

  /** Draw in the next frame, once, however often this is called. */
  redraw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame((now) => this.draw(now));
  }

  draw(now) {
    this.isDue = false;
    const began = performance.now();
    if (this.time.playing) this.time.advance(Math.min(now - (this.lastFrame ?? now), 250));
    this.lastFrame = this.time.playing ? now : null;
    drawHead(this);
    const view = byId("view");
    const width = view.clientWidth - 28;
    this.height = view.clientHeight;
    view.setAttribute("aria-labelledby", `tab-${this.view}`);
    patch(view, [h("div", { key: this.view, class: `view ${this.view}` }, this.viewTree(width))]);
    byId("side").classList.toggle(
      "needed",
      this.lesson !== null ||
        this.selected !== null ||
        this.openNote !== "" ||
        (this.verdict !== null && !this.isBeforeEnd),
    );
    patch(byId("side"), sideTree(this));
    patch(byId("time"), timeBar(this, this.time));
    this.drawFlights();
    this.frames.push(performance.now() - began);
    if (this.frames.length > 600) this.frames.splice(0, 300);
    if (this.time.playing) this.redraw();
  }

  viewTree(width) {
    if (this.model.began === null)
      return [
        h(
          "p",
          { class: "dim" },
          this.linkState === "lost" ? "The cluster does not answer." : "Waiting for the cluster.",
        ),
      ];
    if (this.view === "cluster") return clusterView(this, width);
    if (this.view === "client") return clientView(this, width);
    if (this.view === "groups") return groupsView(this);
    const partition = this.shownPartition;
    return partition
      ? partitionView(this, partition, width)
      : [h("p", { class: "dim" }, "There is no topic yet.")];
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
  }

  moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.nextView(step);
    byId(`tab-${this.view}`).focus();
  }

  nextView(step) {
    const place = VIEWS.findIndex(([key]) => key === this.view);
    this.show(VIEWS[(place + step + VIEWS.length) % VIEWS.length][0]);
    this.draw(performance.now());
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
      return;
    const { target } = event;
    if (target.matches("input, select, textarea")) return;
    if ((event.key === " " || event.key === "Enter") && target.matches("button, [role=button]"))
      return;
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
      : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/** A future as the server answers it: its rows are on the clock of the run that was played. */
function futureOf({ rows, verdict, until_ms: until, problems }) {
  const model = new Model();
  model.add(rows, until);
  return { model, verdict, problems };
}

/** The questions of the server: texts, choices and the index of the right answer. */
function questionsOf({ questions }) {
  return questions.map(({ text, partition, choices, answer: right, reason }) => ({
    text,
    partition,
    reason,
    choices: choices.map((each) => each.text),
    answer: choices.findIndex((each) => String(each.value) === String(right)),
  }));
}

/** `#t=1200`: the moment since the start that a complete record opens at. */
function momentInAddress(model) {
  const found = /[#&]t=(\d+)/.exec(location.hash);
  return found ? model.began + Number(found[1]) : null;
}

const page = new Page();
window.kclusterPage = page;
patch(byId("patterns"), [epochPatterns()]);
const wanted = /[#&]view=(\w+)/.exec(location.hash)?.[1];
if (VIEWS.some(([key]) => key === wanted)) page.view = wanted;
addEventListener("keydown", (event) => page.key(event));
addEventListener("resize", () => page.redraw());
page.connection?.open();
page.redraw();
