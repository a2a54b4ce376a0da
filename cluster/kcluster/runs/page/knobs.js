// @ts-check
// Parameters beside their effect: the same past, played again with other values of them.
//
// The values hold from the start of the past; the server plays it in virtual time.  One request is
// under way at most, and the newest values win.

import { Refusal } from "./connection.js";
import { button, h } from "./dom.js";
import { gapBar } from "./gap_bands.js";
import { gapAt, partWords } from "./gaps.js";
import { clock } from "./words.js";

/** @import { Controls } from "./controls.js" */
/** @import { GapValues, Parameter, ParameterValues, PlayedGap, ReplayAnswer } from "./types.js" */

/** The time without a further change after which the past is played. */
const REST_MS = 120;
const BAR_PX = 480;

export class Knobs {
  /** @param {Controls} controls */
  constructor(controls) {
    this.controls = controls;
    this.isOpen = false;
    this.partition = "";
    /** @type {Parameter[]} */
    this.parameters = [];
    /**
     * What differs from the past.
     *
     * @type {ParameterValues}
     */
    this.values = {};
    /** The end of the past that is played, and the start of the last gap in it. */
    this.at = 0;
    this.gap = -1;
    this.error = "";
    /** @type {ReplayAnswer | null} */
    this.answer = null;
    this.isBusy = false;
    this.isDue = false;
    this.timer = 0;
  }

  toggle() {
    this.isOpen = !this.isOpen && this.controls.page.shownPartition !== null;
    if (this.isOpen) this.load();
    this.controls.page.redraw();
  }

  /** Ask for the parameters of the partition that is shown. */
  async load() {
    this.partition = this.controls.page.shownPartition?.name ?? "";
    Object.assign(this, { parameters: [], values: {}, answer: null, error: "", gap: -1 });
    const { partition } = this;
    const query = new URLSearchParams({ partition });
    await this.#ask("GET", `?${query}`, undefined, ({ parameters }) => {
      if (partition === this.partition) this.parameters = parameters;
    });
  }

  /**
   * @param {Parameter} parameter
   * @param {number | string} value
   */
  change({ name, value: before }, value) {
    if (value === before || value === "") delete this.values[name];
    else this.values[name] = value;
    if (!Object.keys(this.values).length) this.answer = null;
    this.error = "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.play(), REST_MS);
    this.controls.page.redraw();
  }

  reset() {
    Object.assign(this, { values: {}, answer: null, error: "" });
    this.controls.page.redraw();
  }

  /** Play the past with the newest values; once more if they change meanwhile. */
  async play() {
    this.isDue = Object.keys(this.values).length > 0;
    if (this.isBusy) return;
    this.isBusy = true;
    while (this.isDue) {
      this.isDue = false;
      const wanted = { partition: this.partition, at_ms: this.#moment(), values: this.values };
      const asked = JSON.stringify(this.values);
      await this.#ask("POST", "", wanted, (answer) => {
        if (asked === JSON.stringify(this.values)) this.answer = answer;
      });
    }
    this.isBusy = false;
    this.controls.page.redraw();
  }

  /**
   * The moment that is shown; of a running cluster the first one that was asked for, until another
   * gap begins: the server keeps the past until there.
   */
  #moment() {
    const { model, time, at, shownPartition } = this.controls.page;
    const gap = gapAt(model, shownPartition, at)?.from ?? 0;
    if (!time.isLive || gap !== this.gap) Object.assign(this, { at: Math.round(at), gap });
    return this.at;
  }

  /**
   * @param {string} method
   * @param {string} query
   * @param {unknown} body
   * @param {(answer: any) => void} use
   */
  async #ask(method, query, body, use) {
    try {
      use(await this.controls.ask(method, `/parameters${query}`, body));
      this.error = "";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      Object.assign(this, { error: error.message, answer: null });
    }
    this.controls.page.redraw();
  }
}

/**
 * The sliders and what they change; nothing while they are closed.
 *
 * @param {Knobs} knobs
 */
export function knobsTree(knobs) {
  if (!knobs.isOpen) return null;
  const { page } = knobs.controls;
  if (knobs.partition !== (page.shownPartition?.name ?? "")) knobs.load();
  const { answer, error, parameters, values } = knobs;
  return h(
    "section",
    { key: "knobs", class: "knobs", "aria-label": "Other values" },
    h(
      "div",
      { class: "row" },
      parameters.map((each) => knobTree(knobs, each)),
      button("As it was", () => knobs.reset(), { disabled: !Object.keys(values).length }),
      button("×", () => knobs.toggle(), { class: "close", "aria-label": "Close other values" }),
    ),
    error ? h("p", { key: "error", class: "bad-text", role: "alert" }, error) : null,
    h(
      "p",
      { key: "said", class: "difference strong", role: "status" },
      answer ? answer.difference : knobs.isBusy ? "Playing…" : "",
    ),
    answer ? bandsTree(answer) : null,
    (answer?.assumptions ?? []).map((line) => h("p", { key: line, class: "warn-text" }, line)),
    h(
      "p",
      { key: "how", class: "dim" },
      answer
        ? `The past until ${clock(knobs.at, page.began)}, played twice in virtual time with the same steps and clients; the values hold from its start.`
        : `Move a slider: the past of ${knobs.partition} is played again with that value, which holds from its start.`,
    ),
  );
}

/**
 * @param {Knobs} knobs
 * @param {Parameter} parameter
 */
function knobTree(knobs, parameter) {
  const { name, value: before, choices, least, most, step, unit } = parameter;
  const value = knobs.values[name] ?? before;
  const words = (/** @type {number | string | null} */ each) =>
    each === null ? "as it was" : `${each}${unit && ` ${unit}`}`;
  const label = name === "latency" ? "latency of links" : name;
  const isChanged = name in knobs.values;
  const props = { key: name, "data-knob": name, "aria-label": label };
  return h(
    "label",
    { key: name, class: isChanged ? "changed" : "" },
    h("code", null, label),
    choices.length
      ? h(
          "select",
          { ...props, onchange: (event) => knobs.change(parameter, event.target.value) },
          [...(before === null ? [""] : []), ...choices].map((each) =>
            h(
              "option",
              { key: each, value: each, selected: each === (value ?? "") },
              each || words(null),
            ),
          ),
        )
      : h("input", {
          ...props,
          type: "range",
          min: least,
          max: most,
          step,
          value: String(value),
          "aria-valuetext": words(value),
          oninput: (event) => knobs.change(parameter, Number(event.target.value)),
        }),
    h(
      "output",
      null,
      choices.length ? "" : words(value),
      isChanged ? h("small", null, ` was ${words(before)}`) : null,
    ),
  );
}

/**
 * Both gaps below each other, from the loss of the leader on.
 *
 * @param {ReplayAnswer} answer
 */
function bandsTree({ facts }) {
  /** @type {[string, PlayedGap][]} */
  const rows = [
    ["was", playedGap(facts.gaps[0], facts.here.until_ms)],
    ["is", playedGap(facts.gaps[1], facts.there.until_ms)],
  ];
  const spans = rows.map(([, { gap, until }]) => (gap ? until - gap.from : 0));
  const span = Math.max(...spans);
  if (!span) return null;
  return h(
    "div",
    { key: "bands", class: "bands" },
    rows.map(([word, { gap, until }], row) =>
      h(
        "p",
        { key: word, "data-band": word },
        h("b", null, `${word} ${(spans[row] / 1000).toFixed(1)} s`),
        gap ? gapBar(gap, until, span, BAR_PX) : null,
        h("span", null, gap ? partWords(gap, until) : "no leader is lost"),
      ),
    ),
  );
}

/**
 * A gap as the server answers it, until its end or the end of what was played.
 *
 * @param {GapValues | null} values
 * @param {number} played
 * @returns {PlayedGap}
 */
function playedGap(values, played) {
  if (!values) return { gap: null, until: played };
  const { leader, from_ms: from, noticed_ms, elected_ms, written_ms } = values;
  const gap = { leader, from, noticed: noticed_ms, elected: elected_ms, written: written_ms };
  return { gap, until: written_ms ?? played };
}
