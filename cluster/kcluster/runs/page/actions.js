// @ts-check
// What can be done to a node, a link or a partition: menus, and the actions that they send.

import { h, patch } from "./dom.js";

/** @import { Partition } from "./model.js" */
/** @import { Action, ActionItem, MenuItem, Registration } from "./types.js" */

/** @type {{ menu: HTMLElement, opener: Element } | null} */
let opened = null;

/**
 * The entries of a menu, as the actions declare them (actions/menu.py), with values for the names
 * in braces: [words, action of the scenario grammar].
 *
 * @param {MenuItem["of"]} of
 * @param {string} state
 * @param {{ [name: string]: number | string }} values
 * @returns {ActionItem[]}
 */
function offered(of, state, values) {
  /** @type {(text: string) => string} */
  const inserted = (text) => text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  /** @type {(value: string | boolean) => unknown} */
  const filled = (value) => {
    const name = typeof value === "string" && /^\{(\w+)\}$/.exec(value)?.[1];
    return name ? values[name] : value;
  };
  return declared()
    .filter((item) => item.of === of && (!item.when.length || item.when.includes(state)))
    .map(({ verb, words, value }) => {
      if (value === null || typeof value !== "object")
        return [inserted(words), { [verb]: value === null ? null : filled(value) }];
      const keys = Object.entries(value).map(([key, inner]) => [key, filled(inner)]);
      return [inserted(words), { [verb]: Object.fromEntries(keys) }];
    });
}

/** @type {MenuItem[] | null} */
let items = null;

/** @returns {MenuItem[]} */
function declared() {
  items ??= JSON.parse(document.getElementById("menu")?.textContent || "[]");
  return items ?? [];
}

/**
 * The actions on a broker in its present state.
 *
 * @param {number} id
 * @param {string} state
 * @returns {ActionItem[]}
 */
export function brokerActions(id, state) {
  const now = state === "paused" ? "paused" : state === "down" || state === "" ? "down" : "up";
  return offered("broker", now, { broker: id });
}

/**
 * @param {number} a
 * @param {number} b
 * @returns {ActionItem[]}
 */
export function linkActions(a, b) {
  return offered("link", "", { a, b });
}

/**
 * @param {Partition} partition
 * @param {Registration} registration
 * @returns {ActionItem[]}
 */
export function partitionActions(partition, registration) {
  const { name } = partition;
  const followers = registration.isr.filter((id) => id !== registration.leader);
  return [
    ...followers.flatMap((id) => offered("follower", "", { partition: name, follower: id })),
    ...offered("partition", registration.leader >= 0 ? "led" : "leaderless", { partition: name }),
  ];
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
