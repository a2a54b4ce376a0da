// @ts-check
// The page of the course: lessons with their questions, exercises and scenarios with an editor.
//
// Owns: the address, the student's answers and texts.  Never: plays or judges (python.js asks Python),
// draws a run (run_frame.js shows its page).

import { exerciseCard, scenarioCard } from "./editor.js";
import { lessonCard } from "./lesson_card.js";
import { PLAYS, Python } from "./python.js";
import { RunFrame } from "./run_frame.js";

/** @import { Contents, Lesson, Outcome } from "./types.js" */

const { button, byId, h, patch } = $dom;

export class Course {
  constructor() {
    /** @type {Contents} */
    this.contents = JSON.parse(byId("contents").textContent ?? "");
    /** @type {"lesson" | "exercise" | "scenario"} */
    this.kind = "lesson";
    this.key = "1";
    /** @type {Map<string, Lesson>} */
    this.lessons = new Map();
    this.part = 0;
    /**
     * The choices, by part: -1 for a part without a question, once it has been watched.
     *
     * @type {Map<number, number>}
     */
    this.given = new Map();
    /**
     * The texts that were changed, by the address of the exercise or scenario.
     *
     * @type {Map<string, string>}
     */
    this.texts = new Map(storedTexts());
    this.seed = "";
    /** @type {Outcome | null} */
    this.outcome = null;
    this.isBusy = false;
    this.note = "";
    this.frame = new RunFrame(byId("run"));
    this.python = new Python((stage) => this.say(stage));
    addEventListener("hashchange", () => this.go());
    /** Settled once the page shows what its first address names. */
    this.ready = this.go();
  }

  get address() {
    return `#${this.kind}=${this.key}`;
  }
  /** The lesson that is shown, or whose exercise is; null until it has been played. */
  get shown() {
    return this.lessons.get(this.key) ?? null;
  }
  /** The list's entry for what is shown; undefined if the address names nothing. */
  get heading() {
    const { lessons, scenarios } = this.contents;
    return this.kind === "scenario"
      ? scenarios.find(({ name }) => name === this.key)
      : lessons.find(({ number }) => String(number) === this.key);
  }
  get scenario() {
    return this.contents.scenarios.find(({ name }) => name === this.key) ?? null;
  }
  /** The name of the editor's text in messages. */
  get file() {
    return this.kind === "scenario" ? `${this.key}.yaml` : `exercise-${this.key}.yaml`;
  }
  /** The text of the editor. */
  get text() {
    return (
      this.texts.get(this.address) ??
      (this.kind === "scenario" ? this.scenario?.text : this.shown?.exercise.text) ??
      ""
    );
  }

  readAddress() {
    const found = /^#(lesson|exercise|scenario)=(\w+)$/.exec(location.hash);
    this.kind = /** @type {"lesson"} */ (found?.[1] ?? "lesson");
    this.key = found?.[2] ?? "1";
  }

  /** Show what the address names. */
  async go() {
    if (this.isBusy) this.stop();
    this.readAddress();
    this.part = 0;
    this.given.clear();
    this.outcome = null;
    this.note = "";
    this.frame.clear();
    this.draw();
    byId("card").scrollTop = 0;
    const { address } = this;
    if (!this.heading) {
      this.say("");
      return;
    }
    if (this.kind === "scenario") {
      this.say("Run the scenario to see it.");
      return;
    }
    const lesson = await this.lesson();
    if (!lesson || address !== this.address) return;
    if (this.kind === "exercise") this.say("Run your answer to see it.");
    else {
      await this.frame.show(lesson.page, lesson.partition);
      if (address !== this.address) return;
      this.note = tookNote(lesson);
      this.say("");
      void this.search(lesson);
    }
    this.draw();
  }

  /**
   * Play the searches of a lesson while its picture is looked at, until another one is shown.
   *
   * @param {Lesson} lesson
   */
  async search({ parts }) {
    const { address } = this;
    for (const [index, part] of parts.entries()) {
      while ((part.searched ?? 0) < part.searches) {
        const asked = this.python.ask("search", [Number(this.key), index]);
        const found = await this.guarded(asked);
        if (!found || address !== this.address) return;
        const { done, right = null, seen = "" } = found;
        Object.assign(part, { searched: done, right, seen });
        this.draw();
      }
    }
  }

  /** The lesson that is shown, played if it has not been. */
  async lesson() {
    const { key } = this;
    const known = this.lessons.get(key);
    if (known) return known;
    if (this.python.isReady) this.say(PLAYS);
    const lesson = await this.guarded(this.python.ask("lesson", [Number(key)]));
    if (lesson) this.lessons.set(key, lesson);
    return lesson;
  }

  /** @param {number} part */
  async showPart(part) {
    const lesson = this.shown;
    if (!lesson) return;
    this.part = part;
    byId("card").scrollTop = 0;
    byId("card").focus();
    this.draw();
    const { page = "", from = Number.MAX_SAFE_INTEGER } = lesson.parts[part] ?? {};
    await this.frame.swap(page || lesson.page, lesson.partition);
    if (lesson === this.shown && part === this.part) this.frame.look(from);
  }

  /** @param {number} choice */
  answer(choice) {
    const part = this.shown?.parts[this.part];
    if (!part) return;
    this.given.set(this.part, choice);
    this.frame.play(part.from, part.until);
    this.draw();
  }

  /** @param {string} text */
  edit(text) {
    this.texts.set(this.address, text);
    storeTexts(this.texts);
    this.draw();
  }
  reset() {
    this.texts.delete(this.address);
    storeTexts(this.texts);
    this.outcome = null;
    this.draw();
  }

  /**
   * Run the text of the editor, or grade it.
   *
   * @param {"run" | "grade"} call
   */
  async try(call) {
    const { address, text, seed } = this;
    if (!/^\d{0,15}$/.test(seed)) {
      const problem = { line: 0, column: 0, text: "seed: not a whole number from 0 on" };
      this.outcome = { problems: [problem], took_ms: 0 };
      this.draw();
      return;
    }
    this.isBusy = true;
    this.outcome = null;
    this.frame.clear();
    this.say(call === "run" ? "The scenario runs." : "Your answer is run with other seeds.");
    this.draw();
    const asked =
      call === "run"
        ? this.python.ask(
            "run",
            [text, this.file, seed === "" ? undefined : Number(seed)],
            (done, of) => this.say(`${done / 1000} of ${of / 1000} s of the cluster`),
          )
        : this.python.ask("grade", [Number(this.key), text, this.file], (done, of) =>
            this.say(`${done} of ${of} runs`),
          );
    /** @type {Outcome | null} */
    const outcome = await this.guarded(asked);
    this.isBusy = false;
    if (address !== this.address) return;
    this.outcome = outcome;
    this.note = "";
    if (outcome) this.say(outcome.problems ? "Correct the text, and run it again." : "");
    this.draw();
    if (outcome?.page) {
      await this.frame.show(outcome.page);
      this.note = tookNote(outcome);
    }
    this.draw();
  }

  /** End what runs: Python starts again. */
  stop() {
    this.python.begin();
  }

  /**
   * The answer; null if Python failed or was stopped, with the reason on the page.
   *
   * @param {Promise<any>} answer
   */
  async guarded(answer) {
    try {
      return await answer;
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
      return null;
    }
  }

  /** @param {string} words */
  say(words) {
    byId("state").textContent = words;
  }

  // -------------------------------------------------------------------------------- drawing

  draw() {
    patch(byId("head"), this.head());
    patch(byId("card"), this.card());
  }

  head() {
    const { lessons, scenarios } = this.contents;
    const number = this.kind === "scenario" ? "1" : this.key;
    const first = scenarios[0]?.name ?? "";
    return [
      h("h1", null, "kcluster in this browser"),
      this.tab("lesson", "Lessons", `#lesson=${number}`),
      this.tab("exercise", "Exercises", `#exercise=${number}`),
      this.tab("scenario", "Scenarios", `#scenario=${first}`),
      h(
        "select",
        {
          "aria-label": "Which one",
          onchange: ({ target }) => {
            location.hash = `${this.kind}=${target.value}`;
          },
        },
        this.kind === "scenario"
          ? scenarios.map(({ name, title }) => this.option(name, title))
          : lessons.map((each) =>
              this.option(String(each.number), `${each.number}. ${each.title}`),
            ),
      ),
      h("span", { class: "gap" }),
      this.frame.html
        ? button("Save this run", () => this.frame.save(`${this.kind}-${this.key}`), {
            title: "A file that opens without the course",
          })
        : null,
    ];
  }

  /**
   * @param {string} kind
   * @param {string} words
   * @param {string} address
   */
  tab(kind, words, address) {
    const current = this.kind === kind ? { "aria-current": "page" } : {};
    const go = () => {
      location.hash = address;
    };
    return button(words, go, { key: kind, ...current });
  }

  /**
   * @param {string} value
   * @param {string} words
   */
  option(value, words) {
    return h("option", { key: value, value, selected: value === this.key }, words);
  }

  card() {
    if (this.kind === "lesson") return lessonCard(this);
    return this.kind === "exercise" ? exerciseCard(this) : scenarioCard(this);
  }
}

const STORE = "kcluster course";

/**
 * The texts that were changed here before.  Some browsers store nothing for a page of a file.
 *
 * @returns {[string, string][]}
 */
function storedTexts() {
  try {
    return JSON.parse(localStorage.getItem(STORE) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {Map<string, string>} texts */
function storeTexts(texts) {
  try {
    localStorage.setItem(STORE, JSON.stringify([...texts]));
  } catch {
    // The text stays until the page is left.
  }
}

/** @param {{ took_ms: number }} answer */
const tookNote = ({ took_ms: took }) => `Played in this browser in ${(took / 1000).toFixed(2)} s.`;

export function start() {
  Object.assign(window, { kclusterCourse: new Course() });
}
