// @ts-check
// The view of groups and transactions: members, assignment, commits and lag; states and open ones.

import { h, tableHead } from "../dom.js";
import { rowAt } from "../model.js";
import { moment } from "../moment.js";
import { partitionAt } from "../replicas.js";
import { registerView } from "../views.js";
import { number } from "../words.js";

/** @import { Page } from "../page.js" */
/** @import { CommitRow, GroupRow, Pairs, TransactionStateRow } from "../types.js" */

registerView("groups", moment(groupsView));

const MAX_CARDS = 20;

/** @param {Page} page */
function groupsView(page) {
  const { model, at } = page;
  const groups = presentAt(model.groups, at),
    transactions = presentAt(model.transactions, at);
  return [
    h("h2", null, "Groups"),
    groups.length
      ? h(
          "div",
          { class: "cards" },
          groups.slice(0, MAX_CARDS).map(([name, row]) => groupTree(page, name, row)),
        )
      : h("p", { class: "dim" }, "There is no group yet. A consumer with a group makes one."),
    h("h2", null, "Transactions"),
    transactions.length
      ? transactionsTree(transactions)
      : h("p", { class: "dim" }, "There is no transactional producer yet."),
    openTree(page),
  ];
}

/**
 * [name, row] of what exists at a time; Kafka calls what is gone Dead.
 *
 * @template {{ at: number, state: string }} Row
 * @param {Map<string, Row[]>} table
 * @param {number} at
 * @returns {[string, Row][]}
 */
const presentAt = (table, at) =>
  [...table].flatMap(([name, rows]) => {
    const row = rowAt(rows, at);
    return row && row.state !== "Dead" ? [[name, row]] : [];
  });

/**
 * @param {Page} page
 * @param {string} name
 * @param {GroupRow} row
 */
function groupTree(page, name, row) {
  const { model, at } = page;
  const commits = [];
  for (const [key, rows] of model.commits) {
    if (!key.startsWith(`${name} `)) continue;
    const commit = rowAt(rows, at);
    if (commit) commits.push(commit);
  }
  return h(
    "section",
    { key: name, class: "card", "aria-label": `Group ${name}` },
    h("h3", null, name, " ", h("span", { class: `badge ${badgeOf(row.state)}` }, row.state)),
    h(
      "p",
      { class: "dim" },
      `${row.kind} group · ${row.kind === "classic" ? "generation" : "epoch"} ${row.epoch}` +
        ` · coordinator ${row.coordinator < 0 ? "none" : `broker ${row.coordinator}`}`,
    ),
    row.members.length
      ? h(
          "table",
          null,
          tableHead("member", "client", "assigned"),
          h(
            "tbody",
            null,
            row.members
              .slice(0, 30)
              .map((member) =>
                h(
                  "tr",
                  { key: member.id },
                  h("th", { scope: "row", title: member.id }, shortened(member.id)),
                  h("td", null, member.client),
                  h("td", null, assignedText(member.assignment)),
                ),
              ),
          ),
        )
      : h("p", null, "No members."),
    commits.length
      ? h(
          "table",
          null,
          tableHead("partition", "committed", "lag"),
          h(
            "tbody",
            null,
            commits.slice(0, 30).map((commit) => commitTree(page, commit)),
          ),
        )
      : null,
  );
}

/**
 * @param {Page} page
 * @param {CommitRow} commit
 */
function commitTree(page, commit) {
  const partition = page.model.partitions.get(`${commit.topic}-${commit.partition}`);
  const mark = partition
    ? (partitionAt(page.model, partition, page.at).leader?.mark ?? null)
    : null;
  const lag = mark === null ? null : Math.max(mark - commit.offset, 0);
  return h(
    "tr",
    { key: `${commit.topic}-${commit.partition}` },
    h("th", { scope: "row" }, `${commit.topic}-${commit.partition}`),
    h("td", null, number(commit.offset)),
    h("td", null, lag === null ? "unknown" : number(lag)),
  );
}

/** @param {[string, TransactionStateRow][]} transactions */
function transactionsTree(transactions) {
  return h(
    "table",
    null,
    tableHead("transactional id", "state", "producer", "partitions", "coordinator"),
    h(
      "tbody",
      null,
      transactions
        .slice(0, 60)
        .map(([id, row]) =>
          h(
            "tr",
            { key: id },
            h("th", { scope: "row" }, id),
            h("td", null, h("span", { class: `badge ${badgeOf(row.state)}` }, row.state)),
            h("td", null, `id ${row.producer_id}, epoch ${row.producer_epoch}`),
            h("td", null, assignedText(row.partitions) || "none"),
            h("td", null, row.coordinator < 0 ? "none" : `broker ${row.coordinator}`),
          ),
        ),
    ),
  );
}

/**
 * Partitions whose last stable offset stands below the high watermark.
 *
 * @param {Page} page
 */
function openTree(page) {
  const rows = [];
  for (const partition of page.model.partitions.values()) {
    const { leader } = partitionAt(page.model, partition, page.at);
    if (!leader || leader.stable < 0 || leader.stable >= leader.mark) continue;
    rows.push(
      h(
        "tr",
        { key: partition.name },
        h("th", { scope: "row" }, partition.name),
        h("td", null, number(leader.stable)),
        h("td", null, number(leader.mark)),
        h("td", null, number(leader.mark - leader.stable)),
      ),
    );
    if (rows.length >= 40) break;
  }
  if (!rows.length) return null;
  return h(
    "section",
    null,
    h("h3", null, "Held back by open transactions"),
    h(
      "table",
      null,
      tableHead("partition", "last stable offset", "high watermark", "records"),
      h("tbody", null, rows),
    ),
  );
}

/** @param {string} id */
const shortened = (id) => (id.length > 26 ? `${id.slice(0, 14)}…${id.slice(-8)}` : id);

/** @param {Pairs} pairs */
function assignedText(pairs) {
  return [...Map.groupBy(pairs, ([topic]) => topic)]
    .map(([topic, found]) => {
      const numbers = found.map(([, partition]) => partition).sort((a, b) => a - b);
      return `${topic}: ${numbers.join(", ")}`;
    })
    .join("; ");
}

/** @type {{ [state: string]: string }} */
const BADGES = {
  Stable: "good",
  Empty: "",
  Dead: "",
  CompleteCommit: "good",
  CompleteAbort: "warn",
  Ongoing: "warn",
};
/** @param {string} state */
const badgeOf = (state) => BADGES[state] ?? "warn";
