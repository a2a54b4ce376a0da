// @ts-check
// The cards of an exercise and of a scenario: the text, its problems, and the result of its run.

import { comingCard, text } from "./lesson_card.js";

/** @import { Course } from "./site.js" */
/** @import { Outcome, Problem } from "./types.js" */

const { button, byId, h } = $dom;

/** @param {Course} course */
export function scenarioCard(course) {
  const { scenario } = course;
  if (!scenario) return [h("p", null, `There is no scenario ${course.key}.`)];
  return [
    h("h2", { key: "title" }, scenario.title),
    ...editor(course),
    h(
      "div",
      { key: "row", class: "row" },
      ...runButtons(course),
      h(
        "label",
        null,
        "seed ",
        h("input", {
          type: "number",
          min: 0,
          style: "width: 6em",
          "aria-label": "Seed",
          value: course.seed,
          oninput: ({ target }) => {
            course.seed = target.value;
          },
        }),
      ),
      button("Undo all changes", () => course.reset()),
    ),
    ...outcome(course.outcome),
    h("p", { key: "note", class: "dim" }, course.note),
  ];
}

/** @param {Course} course */
export function exerciseCard(course) {
  const lesson = course.shown;
  if (!lesson) return comingCard(course);
  const { exercise } = lesson;
  const { outcome: found } = course;
  return [
    h("h2", { key: "title" }, `Exercise ${lesson.number}: ${exercise.title}`),
    text("task", exercise.task),
    h("h2", { key: "goals title" }, `Goals, in each of ${exercise.runs} runs`),
    h(
      "table",
      { key: "goals" },
      h(
        "tbody",
        null,
        (found?.goals ?? exercise.goals).map((goal, index) => goalRow(goal, index, found)),
      ),
    ),
    h("p", { key: "edit", class: "dim" }, `You may change ${exercise.may_edit.join(", ")}.`),
    ...editor(course),
    h(
      "div",
      { key: "row", class: "row" },
      ...runButtons(course),
      button("Check", () => course.try("grade"), {
        disabled: course.isBusy,
        title: "Grade the answer with seeds that you have not seen",
      }),
      button("Undo all changes", () => course.reset()),
    ),
    found?.points === undefined
      ? null
      : h(
          "p",
          { key: "points", role: "status" },
          h("strong", null, `${found.points} of ${found.of} points, ${found.runs} runs. `),
          found.page ? "Beside it is the first run that missed a goal." : null,
        ),
    ...outcome(found),
    exercise.hint
      ? h("details", { key: "hint" }, h("summary", null, "Hint"), text("hint", exercise.hint))
      : null,
    h("p", { key: "note", class: "dim" }, course.note),
  ];
}

/**
 * @param {any} goal of an exercise, or as it was graded
 * @param {number} index
 * @param {Outcome | null} found
 */
function goalRow(goal, index, found) {
  if (!found?.goals)
    return h(
      "tr",
      { key: index },
      h("td", null, goal.text),
      h("td", { class: "points" }, String(goal.points)),
    );
  const missed = goal.failed_runs
    ? `missed in ${goal.failed_runs} of ${found.runs} runs; ${goal.why}`
    : "";
  return h(
    "tr",
    { key: index },
    h("td", null, goal.text, missed ? h("div", { class: "bad-text" }, missed) : null),
    h(
      "td",
      { class: missed ? "points bad-text" : "points good-text" },
      `${goal.points} of ${goal.of}`,
    ),
  );
}

/** @param {Course} course */
const runButtons = (course) => [
  course.isBusy
    ? button("Stop", () => course.stop(), { key: "stop" })
    : button("Run", () => course.try("run"), {
        key: "run",
        class: "main",
        title: "Ctrl and Enter",
        disabled: !course.text.trim(),
      }),
];

/** @param {Course} course */
const editor = (course) => [
  h("textarea", {
    key: course.address,
    id: "text",
    spellcheck: "false",
    autocapitalize: "off",
    "aria-label": "Scenario",
    value: course.text,
    oninput: ({ target }) => course.edit(target.value),
    onkeydown: (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || course.isBusy) return;
      event.preventDefault();
      course.try("run");
    },
  }),
];

/** @param {Outcome | null} found */
const outcome = (found) => [
  (found?.problems ?? []).map((problem, index) =>
    button(problem.text, () => showPlace(problem), { key: `problem ${index}`, class: "problem" }),
  ),
  found?.lines ? h("pre", { key: "lines" }, found.lines) : null,
];

/** @param {Problem} problem */
function showPlace({ line, column }) {
  const area = /** @type {HTMLTextAreaElement} */ (byId("text"));
  const lines = area.value.split("\n");
  if (!line) return;
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start + column - 1, start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = Math.max(0, line - 5) * (area.scrollHeight / Math.max(lines.length, 1));
}
