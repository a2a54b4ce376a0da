// @ts-check
// The form that an empty cluster shows, and the dialog that creates a topic.

import { button, h } from "./dom.js";
import { openDialog } from "./help.js";

/** @import { Controls } from "./controls.js" */
/** @import { Inside } from "./types.js" */

const TOPIC = "orders";
const GROUP = "readers";
/** Slow enough that a viewer follows each record. */
const RATE = "2/s";

/**
 * What a cluster without a topic offers.
 *
 * @param {Controls} controls
 * @returns {Inside[]}
 */
export const firstTree = (controls) => [
  h(
    "form",
    { key: "first", class: "first card", onsubmit: (event) => beginAs(controls, event) },
    h("h2", null, "This cluster has no topic yet"),
    h(
      "p",
      null,
      h("label", null, "Topic ", h("input", { name: "topic", value: TOPIC, required: true })),
    ),
    h("button", { type: "submit", class: "main" }, "Create it, with a producer and a consumer"),
    h(
      "p",
      { class: "dim" },
      "Or connect clients of your own: they are shown under their client.id.",
    ),
  ),
];

/**
 * @param {Controls} controls
 * @param {SubmitEvent & { target: HTMLFormElement }} event
 */
function beginAs(controls, event) {
  event.preventDefault();
  const topic = String(new FormData(event.target).get("topic"));
  return controls.attempt(async () => {
    await controls.ask("POST", "/actions", { create_topic: { name: topic, partitions: 1 } });
    await controls.ask("POST", "/clients", { producer: { topic, rate: RATE } });
    await controls.ask("POST", "/clients", { consumer: { topic, group: GROUP } });
  });
}

/** @param {Controls} controls */
export const topicButton = (controls) =>
  button("New topic…", () => openTopics(controls), { id: "new-topic" });

/** @param {Controls} controls */
function openTopics(controls) {
  const field = (/** @type {string} */ label, /** @type {{ [name: string]: unknown }} */ props) =>
    h("p", { key: label }, h("label", null, `${label} `, h("input", props)));
  const dialog = openDialog("clients", "New topic", [
    h(
      "form",
      {
        key: "topic",
        onsubmit: async (event) => {
          event.preventDefault();
          const data = new FormData(event.target);
          const topic = { name: data.get("name"), partitions: Number(data.get("partitions")) };
          dialog.close();
          await controls.attempt(() => controls.ask("POST", "/actions", { create_topic: topic }));
        },
      },
      field("Name", { name: "name", required: true }),
      field("Partitions", { name: "partitions", type: "number", min: 1, max: 1000, value: "3" }),
      h("p", null, h("button", { type: "submit" }, "Create the topic")),
    ),
  ]);
}
