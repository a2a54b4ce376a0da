// @ts-check
// The card of a lesson: one part at a time, with its question, and the answer once it is given.

/** @import { Course } from "./site.js" */
/** @import { Lesson, Part } from "./types.js" */

const { button, h } = $dom;

/** @param {Course} course */
export function lessonCard(course) {
  const lesson = course.shown;
  if (!lesson) return comingCard(course);
  const part = lesson.parts[course.part];
  return [
    h("div", { key: `lesson ${lesson.number} ${course.part}` }, ...inside(course, lesson, part)),
    h("p", { key: "note", class: "dim" }, course.note),
  ];
}

/**
 * What can be read while the lesson is played.
 *
 * @param {Course} course
 */
export function comingCard(course) {
  const { lessons } = course.contents;
  const heading = lessons.find(({ number }) => String(number) === course.key);
  if (!heading)
    return [h("p", null, `There is no lesson ${course.key}; there are ${lessons.length}.`)];
  return [
    h(
      "div",
      { key: `lesson ${course.key} 0` },
      h("h2", { key: "title" }, heading.title),
      text("intro", heading.intro),
    ),
  ];
}

/**
 * @param {Course} course
 * @param {Lesson} lesson
 * @param {Part | undefined} part
 */
function inside(course, lesson, part) {
  if (!part) return end(course, lesson);
  const given = course.given.get(course.part);
  const isSearched = (part.searched ?? 0) >= part.searches;
  const isKnown = given !== undefined && isSearched;
  return [
    course.part === 0 ? h("h2", { key: "title" }, lesson.title) : null,
    course.part === 0 ? text("intro", lesson.intro) : null,
    h("h2", { key: "part" }, `${course.part + 1} of ${lesson.parts.length}. ${part.title}`),
    text("text", part.text),
    part.question ? h("p", { key: "question" }, h("strong", null, part.question)) : null,
    part.choices.map((choice, index) =>
      button(choice, () => course.answer(index), {
        key: `choice ${index}`,
        class: `choice${isKnown ? outcome(index, given, part) : ""}`,
        disabled: given !== undefined,
      }),
    ),
    isSearched || given === undefined
      ? null
      : h(
          "p",
          { key: "search", role: "status" },
          `${part.searched ?? 0} of ${part.searches} runs have been played.`,
        ),
    isKnown && part.question
      ? h("p", { key: "verdict", role: "status" }, h("strong", null, verdict(given, part)))
      : null,
    isKnown ? known(part) : null,
    h("div", { key: "row", class: "row" }, ...row(course, part, isKnown)),
  ];
}

/**
 * @param {number} index
 * @param {number} given
 * @param {Part} part
 */
const outcome = (index, given, part) =>
  index === part.right ? " right" : index === given ? " wrong" : "";

/**
 * @param {number} given
 * @param {Part} part
 */
const verdict = (given, part) =>
  given === part.right ? "Right." : `Not quite: ${part.choices[part.right ?? 0]}`;

/** @param {Part} part */
const known = (part) => [
  text("because", part.because),
  part.seen ? h("pre", { key: "seen" }, part.seen) : null,
  text("after", part.after),
];

/**
 * @param {Course} course
 * @param {Part} part
 * @param {boolean} isKnown
 */
const row = (course, part, isKnown) => [
  course.part ? button("Back", () => course.showPart(course.part - 1)) : null,
  isKnown
    ? button("Watch again", () => course.frame.play(part.from, part.until))
    : part.question
      ? null
      : button("Watch", () => course.answer(-1), { class: "main" }),
  isKnown ? button("Go on", () => course.showPart(course.part + 1), { class: "main" }) : null,
];

/**
 * @param {Course} course
 * @param {Lesson} lesson
 */
function end(course, lesson) {
  const asked = lesson.parts.filter(({ question }) => question).length;
  const right = lesson.parts.filter((part, index) => course.given.get(index) === part.right).length;
  return [
    h("h2", { key: "title" }, "What to remember"),
    text("summary", lesson.summary),
    asked
      ? h("p", { key: "right" }, `You answered ${right} of ${asked} questions correctly.`)
      : null,
    h(
      "div",
      { class: "row" },
      button("Back", () => course.showPart(lesson.parts.length - 1)),
      button(
        `Exercise: ${lesson.exercise.title}`,
        () => {
          location.hash = `exercise=${lesson.number}`;
        },
        { class: "main" },
      ),
    ),
  ];
}

/**
 * Text with lists, whose items begin with `- `.
 *
 * @param {string} name
 * @param {string} markdown
 */
export function text(name, markdown) {
  const items = markdown.trim().split(/^- /m);
  if (items.length < 2) return $lesson.paragraphs(name, markdown);
  return [
    $lesson.paragraphs(`${name} head`, items[0]),
    h(
      "ul",
      { key: name },
      items.slice(1).map((item, index) => h("li", { key: index }, $lesson.paragraphs("", item))),
    ),
  ];
}
