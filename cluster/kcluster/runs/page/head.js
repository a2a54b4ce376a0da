// @ts-check
// The head of the page: views, choices, and the newest event or what was predicted.

import { openHelp } from "./dialogs.js";
import { button, byId, h, patch } from "./dom.js";
import { clock, lasting, OUTCOMES, problemWords } from "./words.js";

/** @import { Model } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Facts } from "./timeline/facts.js" */
/** @import { Inside, Prediction } from "./types.js" */

/**
 * A run's name, the worse of the cluster's verdict and the application's ledger, and its facts.
 *
 * @param {Facts} facts
 */
function titleTree({ run, verdict, problems }) {
  const { outcome } = run;
  const { reason = "" } = verdict;
  const wrong = problemWords(problems);
  const cluster = outcome === "valid" ? "" : `${outcome}; `;
  const facts = [
    problems.length ? `cluster ${outcome}: ${reason}` : reason,
    run.passed ? "as expected" : "NOT as expected",
    `${run.clock} clock`,
    `seed ${run.seed}`,
    lasting(run.end - run.began),
  ];
  return [
    h("h1", null, run.name),
    wrong
      ? h("span", { class: "badge bad" }, `${cluster}the application: ${wrong}`)
      : h("span", { class: `badge ${OUTCOMES[outcome] ?? "warn"}` }, outcome),
    h("span", { class: "facts" }, facts.filter(Boolean).join(" · ")),
  ];
}

/** @param {Page} page */
function partitionChoice(page) {
  const shown = page.shownPartition?.name ?? "";
  return h(
    "label",
    null,
    "Partition ",
    h(
      "select",
      { id: "partition", onchange: (event) => page.showPartition(event.target.value) },
      page.model
        .partitionNames(page.internal)
        .map((name) => h("option", { key: name, value: name, selected: name === shown }, name)),
    ),
  );
}

/**
 * Draw the tabs, the choices and the newest event.
 *
 * @param {Page} page
 */
export function drawHead(page) {
  patch(
    byId("tabs"),
    page.views.map(({ key, title }) =>
      button(title, () => page.show(key), {
        key,
        role: "tab",
        id: `tab-${key}`,
        "aria-selected": String(key === page.view),
        "aria-controls": "view",
        tabindex: key === page.view ? 0 : -1,
        onkeydown: (event) => page.moveTab(event),
      }),
    ),
  );
  patch(byId("title"), page.facts ? titleTree(page.facts) : [h("h1", null, "kcluster")]);
  patch(byId("choices"), [
    page.shownView.forRuns ? null : partitionChoice(page),
    page.connection && !page.time.isComplete
      ? button("Clients…", () => page.openClientsDialog(), { id: "start-clients" })
      : null,
    page.connection ? button("Verdict", () => page.askVerdict(), { id: "ask-verdict" }) : null,
    page.connection && !page.time.isComplete
      ? button("Predict", () => page.togglePredict(), {
          id: "ask-first",
          "aria-pressed": String(page.predicts),
          title: "Q: questions before each action",
        })
      : null,
    button("Projector", () => page.toggleProjector(), {
      id: "projector",
      "aria-pressed": String(document.body.classList.contains("projector")),
      title: "P: large text",
    }),
    button("◐", () => page.toggleTheme(), {
      id: "theme",
      "aria-label": "Dark or light",
      title: "D: dark or light",
    }),
    button("?", () => openHelp(page), {
      id: "help-button",
      "aria-label": "Help",
      title: "?: keys",
    }),
  ]);
  patch(byId("newest"), page.shownView.forRuns ? [] : newestTree(page));
}

/**
 * The newest event in one line, read aloud; a lost connection and predictions go before it.
 *
 * @param {Page} page
 * @returns {Inside[]}
 */
function newestTree(page) {
  if (page.linkState === "lost")
    return [h("b", { class: "bad-text" }, "The cluster does not answer; trying again.")];
  if (page.prediction) return predictionTree(page, page.prediction);
  const stepped = page.model.noteById.get(page.openNote);
  const note = stepped?.at === page.at ? stepped : newestOf(page.model, page.at);
  return note
    ? [
        h("time", null, clock(note.at, page.began)),
        h("span", { class: `${note.mood}-text` }, `${note.subject}: ${note.text}`),
      ]
    : [];
}

/**
 * What was predicted and, once it has happened, who was right.
 *
 * @param {Page} page
 * @param {Prediction} prediction
 */
function predictionTree(page, { questions, answers, isOpen }) {
  return [
    button(
      "×",
      () => {
        page.prediction = null;
        page.redraw();
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
 * The newest event; of those of one moment, who leads now is what people wait for.
 *
 * @param {Model} model
 * @param {number} at
 */
function newestOf(model, at) {
  const found = model.storyUntil(at, 40);
  const same = found.filter((note) => note.at === found[0].at);
  return (
    same.find((note) => note.kind === "partition_offline" || note.kind === "leader_elected") ??
    found[0]
  );
}
