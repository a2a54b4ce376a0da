// What can be done to a node, a link or a partition: menus, and the actions that they send.

let menu = null;

/** The actions on a broker in its present state, as [words, action of the scenario grammar]. */
function brokerActions(id, state) {
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

function linkActions(a, b) {
  return [
    ["Cut both ways", { isolate: { nodes: a, others: b } }],
    [`Cut from ${a} to ${b} only`, { isolate: { nodes: a, others: b, one_way: true } }],
    [`Cut from ${b} to ${a} only`, { isolate: { nodes: b, others: a, one_way: true } }],
    ["Slow down (+200 ms)", { slow: { nodes: a, others: b, latency: "200ms" } }],
    ["Heal all links", { heal: null }],
  ];
}

function partitionActions(partition, registration) {
  const moves = registration.isr
    .filter((id) => id !== registration.leader)
    .map((id) => [
      `Move the leader to broker ${id}`,
      { move: { partition: partition.name, to: id } },
    ]);
  const elect =
    registration.leader < 0
      ? [
          [
            "Elect any live replica (unclean)",
            { elect: { partition: partition.name, unclean: true } },
          ],
        ]
      : [["Elect the preferred leader", { elect: partition.name }]];
  return [...moves, ...elect];
}

/** An action in words, as a scenario has it: `kill: 2`, `kill: {brokers: 2, how: power}`. */
function actionText(action) {
  const [[name, value]] = Object.entries(action);
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

/** Open a menu at an element.  `items`: [words, callback]; `note`: a line above them. */
function openMenu(event, title, items, note = "") {
  closeMenu();
  const anchor = event.currentTarget.closest?.("button, g") ?? event.currentTarget;
  menu = document.createElement("div");
  menu.className = "menu";
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", title);
  menu.opener = anchor;
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
    const step = { ArrowDown: 1, ArrowUp: -1 }[pressed.key];
    if (step) {
      const next = buttons.indexOf(document.activeElement) + step;
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
  if (!menu) return;
  const { opener } = menu;
  const hadFocus = menu.contains(document.activeElement);
  menu.remove();
  menu = null;
  if (hadFocus) opener.focus?.();
}

document.addEventListener("pointerdown", (event) => {
  if (menu && !menu.contains(event.target)) closeMenu();
});
