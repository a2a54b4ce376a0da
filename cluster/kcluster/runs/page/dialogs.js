// @ts-check
// Dialogs: starting clients, "what if" with both futures, predictions.

import { actionText, brokerActions, partitionActions } from "./actions.js";
import { button, dialogOf, h, patch } from "./dom.js";
import { openDialog } from "./help.js";
import { crown, logTree, scaleOf } from "./log.js";
import { offsetWords, partitionAt, replicaWords } from "./replicas.js";
import { verdictTree } from "./side.js";
import { clock } from "./words.js";

/** @import { Controls } from "./controls.js" */
/** @import { Model, Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Action, ActionItem, Fork, Future, PartitionAt, Question, Scale, StartedClient, Tree, Verdict } from "./types.js" */

// ------------------------------------------------------------------------------------ clients

/**
 * @param {Controls} controls
 * @param {StartedClient[]} started
 */
export function openClients(controls, started) {
  const topics = [
    ...new Set(
      [...controls.page.model.partitions.values()]
        .filter((each) => !each.internal)
        .map((each) => each.topic),
    ),
  ];
  const running = started.filter((client) => client.stopped_ms < 0);
  const field = (/** @type {string} */ label, /** @type {Tree} */ control) =>
    h("p", { key: label }, h("label", null, `${label} `, control));
  const topicChoice = () =>
    h(
      "select",
      { name: "topic" },
      topics.map((topic) => h("option", { key: topic, value: topic }, topic)),
    );
  /**
   * @param {string} title
   * @param {string} key
   */
  /** @type {(title: string, key: string, fields: Tree[], spec: (data: FormData) => Action) => Tree} */
  const form = (title, key, fields, spec) =>
    h(
      "form",
      {
        key,
        onsubmit: (event) => {
          event.preventDefault();
          controls.startClient(spec(new FormData(event.target)));
        },
      },
      h("h3", null, title),
      fields,
      h("p", null, h("button", { type: "submit" }, `Start a ${key}`)),
    );
  openDialog("clients", "Built-in clients", [
    h(
      "div",
      { class: "columns" },
      form(
        "Producer",
        "producer",
        [
          field("Topic", topicChoice()),
          field(
            "Records per second",
            h("input", { name: "rate", type: "number", min: 1, max: 10000, value: "10" }),
          ),
          field(
            "acks",
            h(
              "select",
              { name: "acks" },
              ["all", "1", "0"].map((acks) => h("option", { key: acks, value: acks }, acks)),
            ),
          ),
        ],
        (data) => ({
          producer: {
            topic: data.get("topic"),
            rate: `${data.get("rate")}/s`,
            acks: data.get("acks") === "all" ? "all" : Number(data.get("acks")),
          },
        }),
      ),
      form(
        "Consumer",
        "consumer",
        [
          field("Topic", topicChoice()),
          field("Group", h("input", { name: "group", value: "readers", required: true })),
        ],
        (data) => ({ consumer: { topic: data.get("topic"), group: data.get("group") } }),
      ),
    ),
    h("h3", null, "Running"),
    running.length
      ? h(
          "ul",
          { class: "plain" },
          running.map((client) =>
            h(
              "li",
              { key: client.name },
              h("b", null, client.name),
              " ",
              button("Stop", () => controls.stopClient(client.name), {
                class: "small",
                "aria-label": `Stop ${client.name}`,
              }),
            ),
          ),
        )
      : h("p", { class: "dim" }, "None was started from here."),
  ]);
}

// --------------------------------------------------------------------------------------- fork

/**
 * The choices of a fork at the moment shown.
 *
 * @param {Page} page
 * @returns {ActionItem[]}
 */
function forkChoices(page) {
  const { model, at } = page;
  const partition = page.shownPartition;
  const registration = partition && model.registrationAt(partition, at);
  /** @type {ActionItem[]} */
  const choices = [];
  if (registration && registration.leader >= 0) {
    const leader = `leader(${partition.name})`; // found at the moment, in the past that is played
    choices.push(
      ["kill the leader", { kill: leader }],
      ["power off the leader", { kill: { brokers: leader, how: "power" } }],
      ["isolate the leader", { isolate: leader }],
    );
  }
  for (const id of model.brokers.keys()) {
    for (const [words, action] of brokerActions(id, model.processAt(id, at).state)) {
      choices.push([`broker ${id}: ${words[0].toLowerCase()}${words.slice(1)}`, action]);
    }
  }
  if (registration) choices.push(...partitionActions(partition, registration));
  return choices;
}

/**
 * @param {Controls} controls
 * @param {Fork} state
 */
export function openForkDialog(controls, state) {
  const { page } = controls;
  const choices = forkChoices(page);
  const isWanted = (/** @type {ActionItem} */ [, action]) =>
    JSON.stringify(action) === JSON.stringify(state.action);
  if (state.action && !choices.some(isWanted)) choices.unshift([state.words, state.action]);
  const chosen = state.action ? choices.findIndex(isWanted) : 0;
  const usual = page.time.isComplete && page.model.until - page.began < 20_000 ? "5s" : "30s";
  openDialog("fork-dialog", `What if, from ${clock(state.at, page.began)} on`, [
    h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const data = new FormData(event.target);
          controls.fork(choices[Number(data.get("action"))], String(data.get("for")));
        },
      },
      h(
        "p",
        { class: "row" },
        h(
          "label",
          null,
          "Action ",
          h(
            "select",
            { name: "action", id: "fork-action" },
            choices.map(([words], index) =>
              h("option", { key: words, value: String(index), selected: index === chosen }, words),
            ),
          ),
        ),
        h(
          "label",
          null,
          "for ",
          h(
            "select",
            { name: "for", "aria-label": "How long" },
            ["5s", "30s", "2min"].map((each) =>
              h("option", { key: each, value: each, selected: each === usual }, each),
            ),
          ),
        ),
        h(
          "button",
          { type: "submit", disabled: state.busy === true },
          state.busy ? "Playing…" : "Play both futures",
        ),
      ),
    ),
    state.futures
      ? null
      : h(
          "p",
          { key: "how", class: "dim" },
          "Both are played in virtual time with the project's own clients. The cluster itself is not touched.",
        ),
    state.error ? h("p", { class: "bad-text", role: "alert" }, state.error) : null,
    state.futures ? futuresTree(controls, state, state.futures) : null,
  ]);
}

/**
 * @param {Controls} controls
 * @param {Fork} state
 * @param {NonNullable<Fork["futures"]>} futures
 */
function futuresTree(controls, state, futures) {
  const { here, there } = futures;
  const end = Math.max(here.model.until, there.model.until);
  const { began } = here.model;
  /** @type {[string, string, Future][]} */
  const columns = [
    ["here", "With nothing more done", here],
    ["there", `With ${state.action ? actionText(state.action) : ""}`, there],
  ];
  const shown = columns.map(([, , { model }]) => {
    const partition = model.partitions.get(controls.page.shownPartition?.name ?? "");
    return partition && { partition, at: partitionAt(model, partition, state.shown) };
  });
  const replicas = shown.flatMap((each) => each?.at.replicas ?? []);
  const wide = innerWidth > 1100 ? 360 : Math.max(160, Math.min(480, innerWidth - 90));
  const scale = replicas.length ? scaleOf(replicas, wide) : null;
  return h(
    "div",
    null,
    h("p", { class: "difference strong", role: "status" }, futures.difference),
    (futures.assumptions ?? []).map((line, index) =>
      h("p", { key: `assumed${index}`, class: "warn-text" }, line),
    ),
    h(
      "p",
      { class: "moments" },
      h(
        "label",
        null,
        "Moment ",
        h("input", {
          type: "range",
          id: "fork-slider",
          min: state.moment,
          max: end,
          value: String(state.shown),
          "aria-valuetext": clock(state.shown, began),
          oninput: (event) => {
            state.shown = Number(event.target.value);
            openForkDialog(controls, state);
          },
        }),
      ),
      h("output", { class: "strong" }, clock(state.shown, began)),
    ),
    columns.map(([name, title, { model, problems, verdict }], index) =>
      h(
        "section",
        { key: name, class: "future", "data-future": name, "aria-label": title },
        h("h3", null, title, " ", outcomeTree(verdict)),
        problems.map((text) => h("p", { key: text, class: "bad-text" }, text)),
        h(
          "div",
          { class: "columns" },
          h(
            "div",
            { key: "logs" },
            shown[index] && scale
              ? replicasTree(model, shown[index].partition, shown[index].at, scale, wide)
              : null,
          ),
          h(
            "div",
            { key: "events" },
            verdict?.outcome === "invalid" ? verdictTree(verdict) : null,
            eventsTree(model, state),
          ),
        ),
      ),
    ),
  );
}

/** @param {Verdict | null} verdict */
function outcomeTree(verdict) {
  const outcome = verdict?.outcome ?? "unknown";
  const mood = { valid: "good", invalid: "bad" }[outcome] ?? "";
  return h("span", { class: `badge ${mood}` }, outcome);
}

/**
 * What has happened in a future since the fork, until the moment shown.
 *
 * @param {Model} model
 * @param {Fork} state
 */
function eventsTree(model, { moment = 0, shown }) {
  const since = model
    .storyUntil(shown, 400)
    .filter((note) => note.at >= moment)
    .slice(-12);
  if (!since.length) return h("p", { class: "dim" }, "Nothing has happened since.");
  return h(
    "ol",
    { class: "events" },
    since.map((note) =>
      h(
        "li",
        { key: note.id, class: note.mood },
        h("time", null, clock(note.at, model.began)),
        `${note.subject}: ${note.text}`,
      ),
    ),
  );
}

/**
 * The replicas' logs, small and without actions, over the offsets of both futures.
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {PartitionAt} shown
 * @param {Scale} scale
 * @param {number} wide
 */
function replicasTree(model, partition, shown, scale, wide) {
  if (!shown.replicas.length) return null;
  const still = { model, selected: null, select: () => {} };
  return h(
    "div",
    { class: "replicas small" },
    shown.replicas.map((each) =>
      h(
        "div",
        { key: each.broker, class: `replica ${each.process.state} ${each.standing}` },
        h(
          "span",
          { class: "label" },
          h("span", { class: `ring ${each.standing}` }, String(each.broker)),
          each.standing === "leader" ? crown() : null,
          h(
            "span",
            { class: "words" },
            [...replicaWords(each, shown.leader), ...offsetWords(each, shown.leader)].join(", "),
          ),
        ),
        logTree(still, partition, shown, each, scale, { lane: wide }),
      ),
    ),
    h(
      "div",
      { key: "axis", class: "replica" },
      h("span", { class: "label" }),
      axisTree(scale, wide),
    ),
  );
}

/**
 * The offsets below the logs: of the first record, of the first cell and of the end.
 *
 * @param {Scale} scale
 * @param {number} wide
 */
function axisTree(scale, wide) {
  const offsets = [...new Set([scale.start, scale.first, scale.end])];
  return h(
    "svg",
    { class: "axis", width: wide, height: 18, "aria-hidden": "true" },
    offsets.map((offset, index) =>
      h(
        "text",
        {
          key: offset,
          x: scale.x(offset),
          y: 13,
          "text-anchor": index === 0 ? "start" : index === offsets.length - 1 ? "end" : "middle",
        },
        index === 0 ? `offset ${offset}` : String(offset),
      ),
    ),
  );
}

// ------------------------------------------------------------------------------------ predict

/**
 * Ask the questions of an action one after the other; resolves with the answers, null if cancelled.
 *
 * @param {Question[]} questions
 * @param {string} words
 * @returns {Promise<number[] | null>}
 */
export function askQuestions(questions, words) {
  const dialog = dialogOf("predict");
  /** @type {number[]} */
  const answers = [];
  return new Promise((resolve) => {
    /** @param {number[] | null} value */
    const finish = (value) => {
      dialog.onclose = null;
      dialog.onkeydown = null;
      if (dialog.open) dialog.close();
      resolve(value);
    };
    const show = () => {
      const { text, choices } = questions[answers.length];
      /** @param {number} index */
      const answer = (index) => {
        answers.push(index);
        if (answers.length === questions.length) finish(answers);
        else show();
      };
      patch(dialog, [
        h(
          "p",
          { class: "dim" },
          `Before “${words}” takes effect`,
          questions.length > 1 ? ` · question ${answers.length + 1} of ${questions.length}` : "",
        ),
        h("h2", null, text),
        h(
          "div",
          { class: "choices" },
          choices.map((choice, index) =>
            h(
              "button",
              {
                key: `${answers.length} ${index}`,
                type: "button",
                onclick: () => answer(index),
              },
              h("kbd", null, String(index + 1)),
              ` ${choice}`,
            ),
          ),
        ),
        h(
          "p",
          null,
          button("Skip the questions", () => finish([]), { class: "small" }),
          " ",
          button("Do nothing", () => finish(null), { class: "small" }),
        ),
      ]);
      dialog.onkeydown = (event) => {
        const index = Number(event.key) - 1;
        if (event.key === "Escape") return;
        event.stopPropagation();
        if (index >= 0 && index < choices.length) {
          event.preventDefault();
          answer(index);
        }
      };
      if (!dialog.open) dialog.showModal();
      dialog.querySelector("button")?.focus();
    };
    dialog.onclose = () => finish(null);
    show();
  });
}
