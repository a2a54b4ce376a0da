// @ts-check
// A lesson at the side: the text of its part, the question, and later which choice was right.

import { h } from "./dom.js";

/** @import { LessonCard } from "./types.js" */

/** @param {LessonCard} card */
export function lessonTree(card) {
  return h(
    "section",
    { key: "lesson", class: "card lesson", "aria-label": "Lesson", "aria-live": "polite" },
    h("h2", null, card.part),
    h("p", { class: "dim" }, card.lesson),
    paragraphs("text", card.text),
    card.question ? h("p", { key: "question" }, h("strong", null, ...inline(card.question))) : null,
    card.choices.length
      ? h(
          "ol",
          { key: "choices" },
          card.choices.map((choice, index) =>
            h(
              "li",
              {
                key: index,
                class: card.right === index ? "good-text" : "",
              },
              ...inline(choice),
              card.right === index ? " ✓" : null,
            ),
          ),
        )
      : null,
    paragraphs("because", card.because),
    paragraphs("after", card.after),
  );
}

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
