// @ts-check
// A lesson at the side: the text of its part, the question, the votes, and which choice is right.
//
// On the page of a running class the answer is given here; on a replay the class's own is shown.

import { button, h } from "./dom.js";

/** @import { Controls } from "./controls.js" */
/** @import { Page } from "./page.js" */
/** @import { LessonCard, ReplayedCard, VotePlace } from "./types.js" */

/**
 * @param {LessonCard} card
 * @param {Controls | null} [controls] of a running class
 */
export function lessonTree(card, controls = null) {
  const isOpen = controls !== null && card.awaits === "answer";
  return h(
    "section",
    {
      key: "lesson",
      class: `card lesson${isOpen ? " asking" : ""}${card.vote_at ? " voting" : ""}`,
      "aria-label": "Lesson",
      "aria-live": "polite",
    },
    h("h2", null, card.part),
    h("p", { class: "dim" }, card.lesson, " · ", momentWords(card)),
    paragraphs("text", card.text),
    card.question ? h("p", { key: "question" }, h("strong", null, ...inline(card.question))) : null,
    card.choices.length
      ? h(
          "ol",
          { key: "choices", class: "answers" },
          card.choices.map((choice, index) =>
            h(
              "li",
              { key: index, class: card.right === index ? "good-text" : "" },
              isOpen
                ? button(choiceWords(choice), () => controls.answerLesson(index))
                : h("span", null, ...inline(choice)),
              card.right === index ? " ✓" : card.given === index ? " (chosen)" : null,
              votesTree(card, index),
            ),
          ),
        )
      : null,
    card.vote_at && card.right === null ? voteTree(card.vote_at, card.voters) : null,
    controls && card.awaits
      ? h(
          "p",
          { key: "on" },
          button(card.awaits === "answer" ? "Go on without an answer" : "Go on", () =>
            controls.answerLesson(null),
          ),
        )
      : null,
    paragraphs("because", card.because),
    paragraphs("after", card.after),
    controls
      ? h(
          "p",
          { key: "replay" },
          h(
            "a",
            { href: controls.replayAddress, download: "replay-of-this-class.html" },
            "Replay of this class, as a file",
          ),
        )
      : null,
  );
}

/**
 * The card of the moment that a replay shows; the answer appears once the part has been played.
 *
 * @param {Page} page
 */
export function replayTree({ lessons, at }) {
  /** @type {ReplayedCard | undefined} */
  const card = lessons.findLast((each) => each.at <= at) ?? lessons[0];
  if (!card) return null;
  const isPlayed = at >= card.at + (card.until_s - card.from_s) * 1000;
  const hidden = { right: null, votes: [], because: "", after: "" };
  return lessonTree(isPlayed ? card : { ...card, ...hidden });
}

/** @param {LessonCard} card */
const momentWords = ({ from_s: from, until_s: until, right, after, because }) =>
  right !== null || after || because
    ? `played until second ${until}`
    : `from second ${from} to second ${until}`;

/**
 * The share of a choice among the votes, once the answer is shown.
 *
 * @param {LessonCard} card
 * @param {number} index
 */
function votesTree({ votes, voters }, index) {
  if (!votes.length) return null;
  return h(
    "span",
    { class: "votes" },
    h("progress", { max: Math.max(voters, 1), value: votes[index], "aria-hidden": "true" }),
    ` ${votes[index]} of ${voters}`,
  );
}

/**
 * Where phones vote, and how many have.
 *
 * @param {VotePlace} place
 * @param {number} voters
 */
function voteTree({ url, path, size }, voters) {
  return h(
    "div",
    { key: "vote", class: "vote" },
    h(
      "svg",
      {
        viewBox: `-3 -3 ${size + 6} ${size + 6}`,
        class: "qr",
        role: "img",
        "aria-label": `QR code of ${url}`,
      },
      h("path", { class: "paper", d: `M-3 -3H${size + 3}V${size + 3}H-3z` }),
      h("path", { class: "ink", d: path }),
    ),
    h("p", null, h("code", null, url)),
    h("p", { class: "strong" }, voters === 1 ? "1 vote" : `${voters} votes`),
  );
}

/** @param {string} text */
const choiceWords = (text) => text.replace(/[`*]/g, "");

/**
 * @param {string} name
 * @param {string} text
 */
export function paragraphs(name, text) {
  return text
    .split(/\n\n+/)
    .filter((each) => each.trim())
    .map((each, index) => h("p", { key: `${name}${index}` }, ...inline(each)));
}

/**
 * `code`, *emphasis* and **weight** as elements; all else is text.
 *
 * @param {string} text
 */
function inline(text) {
  return text
    .replace(/\s+/g, " ")
    .split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)/)
    .filter(Boolean)
    .map((part) => {
      if (part.length > 2 && part.startsWith("`")) return h("code", null, part.slice(1, -1));
      if (part.length > 4 && part.startsWith("**")) return h("strong", null, part.slice(2, -2));
      return part.length > 2 && part.startsWith("*") ? h("em", null, part.slice(1, -1)) : part;
    });
}
