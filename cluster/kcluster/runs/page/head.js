// @ts-check
// The head of the page: its title, tabs and choices.

import { button, byId, h, patch } from "./dom.js";
import { openHelp } from "./help.js";
import { lasting, OUTCOMES, problemWords } from "./words.js";

/** @import { Page } from "./page.js" */
/** @import { Facts } from "./timeline/facts.js" */

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

/**
 * Draw the tabs, the choices and the newest event.
 *
 * @param {Page} page
 */
export function drawHead(page) {
  patch(
    byId("tabs"),
    page.tabs.map(({ key, title }) =>
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
    page.shownView.choice?.(page),
    page.controls?.buttons(),
    button("Projector", () => page.toggleProjector(), {
      id: "projector",
      "aria-pressed": String(document.body.classList.contains("projector")),
      title: "P: large text",
    }),
    page.sound
      ? button("♪", () => page.toggleSound(), {
          id: "sound",
          "aria-pressed": String(page.sound.isOn),
          "aria-label": "Sound",
          title: "S: a tick for each heartbeat, a chord at an election",
        })
      : null,
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
  patch(byId("newest"), page.shownView.newest?.(page) ?? []);
}
