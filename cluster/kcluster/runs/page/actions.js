// @ts-check
// What can be done to a node, a link or a partition: menus, and the actions that they send.

import { h, patch } from "./dom.js";

/** @import { Partition } from "./model.js" */
/** @import { Action, ActionItem, Registration } from "./types.js" */

/** @type {{ menu: HTMLElement, opener: Element } | null} */
let opened = null;

/**
 * The actions on a broker in its present state, as [words, action of the scenario grammar].
 *
 * @param {number} id
 * @param {string} state
 * @returns {ActionItem[]}
 */
export function brokerActions(id, state) {
  if (state === "down" || state === "") return [["Start", { start: id }]];
  if (state === "paused")
    return [
      ["Resume", { resume: id }],
      ["Kill", { kill: id }],
    ];
  return [
    ["Kill (SIGKILL)", { kill: id }],
    ["Power off", { kill: { brokers: id, how: "power" } }],
    ["Wipe its disk", { kill: { brokers: id, how: "wipe" } }],
    ["Shut down cleanly", { stop: id }],
    ["Pause", { pause: id }],
    ["Isolate", { isolate: id }],
    ["Slow its links (+200 ms)", { slow: { nodes: id, latency: "200ms" } }],
    ["Heal its links", { heal: id }],
  ];
}

/**
 * @param {number} a
 * @param {number} b
 * @returns {ActionItem[]}
 */
export function linkActions(a, b) {
  return [
    ["Cut both ways", { isolate: { nodes: a, others: b } }],
    [`Cut from ${a} to ${b} only`, { isolate: { nodes: a, others: b, one_way: true } }],
    [`Cut from ${b} to ${a} only`, { isolate: { nodes: b, others: a, one_way: true } }],
    ["Slow down (+200 ms)", { slow: { nodes: a, others: b, latency: "200ms" } }],
    ["Heal all links", { heal: null }],
  ];
}

/**
 * @param {Partition} partition
 * @param {Registration} registration
 * @returns {ActionItem[]}
 */
export function partitionActions(partition, registration) {
  const { name } = partition;
  const followers = registration.isr.filter((id) => id !== registration.leader);
  /** @type {ActionItem[]} */
  const moves = followers.map((id) => [
    `Move the leader to broker ${id}`,
    { move: { partition: name, to: id } },
  ]);
  if (registration.leader >= 0) return [...moves, ["Elect the preferred leader", { elect: name }]];
  const unclean = { elect: { partition: name, unclean: true } };
  return [...moves, ["Elect any live replica (unclean)", unclean]];
}

/**
 * An action in words, as a scenario has it: `kill: 2`, `kill: {brokers: 2, how: power}`.
 *
 * @param {Action} action
 */
export function actionText(action) {
  const [[name, value]] = Object.entries(action);
  /** @type {(each: unknown) => string} */
  const plain = (each) =>
    each !== null && typeof each === "object"
      ? Array.isArray(each)
        ? `[${each.map(plain).join(", ")}]`
        : `{${Object.entries(each)
            .map(([key, inner]) => `${key}: ${plain(inner)}`)
            .join(", ")}}`
      : each === null
        ? ""
        : String(each);
  return `${name}: ${plain(value)}`.trim();
}

/**
 * Open a menu at an element.  `items`: [words, callback]; `note`: a line above them.
 *
 * @param {{ currentTarget: Element }} event
 * @param {string} title
 * @param {[string, () => void][]} items
 * @param {string} [note]
 */
export function openMenu(event, title, items, note = "") {
  closeMenu();
  const anchor = event.currentTarget.closest("button, g") ?? event.currentTarget;
  const menu = document.createElement("div");
  opened = { menu, opener: anchor };
  menu.className = "menu";
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", title);
  patch(menu, [
    h(
      "p",
      { class: "title" },
      h("b", null, title),
      note ? h("span", { class: "dim" }, ` ${note}`) : null,
    ),
    ...items.map(([words, callback]) =>
      h(
        "button",
        {
          key: words,
          type: "button",
          role: "menuitem",
          tabindex: -1,
          onclick: () => {
            closeMenu();
            callback();
          },
        },
        words,
      ),
    ),
  ]);
  menu.addEventListener("keydown", (pressed) => {
    const buttons = [...menu.querySelectorAll("button")];
    const step = Number(pressed.key === "ArrowDown") - Number(pressed.key === "ArrowUp");
    if (step) {
      const next = buttons.findIndex((each) => each.matches(":focus")) + step;
      buttons[(next + buttons.length) % buttons.length].focus();
    } else if (pressed.key === "Escape" || pressed.key === "Tab") closeMenu();
    else if (pressed.key !== "Enter" && pressed.key !== " ") return;
    else {
      pressed.stopPropagation();
      return;
    }
    pressed.preventDefault();
    pressed.stopPropagation();
  });
  document.body.append(menu);
  const box = anchor.getBoundingClientRect(),
    own = menu.getBoundingClientRect();
  const below =
    box.bottom + 4 + own.height <= innerHeight
      ? box.bottom + 4
      : Math.max(innerHeight - own.height - 6, 6);
  menu.style.left = `${Math.max(6, Math.min(box.left, innerWidth - own.width - 6))}px`;
  menu.style.top = `${below}px`;
  menu.querySelector("button")?.focus();
}

function closeMenu() {
  if (!opened) return;
  const { menu, opener } = opened;
  const hadFocus = menu.contains(document.activeElement);
  menu.remove();
  opened = null;
  if (hadFocus && (opener instanceof HTMLElement || opener instanceof SVGElement)) opener.focus();
}

document.addEventListener("pointerdown", (event) => {
  if (event.target instanceof Node && !opened?.menu.contains(event.target)) closeMenu();
});
