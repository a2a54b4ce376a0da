// @ts-check
// The view of security: who is logged in where, what expires, what brokers do not know yet, and who
// was refused.  A client's part of it stands in the view of the client.

import { h, tableHead } from "../dom.js";
import { lastAt, rowAt } from "../model.js";
import { moment } from "../moment.js";
import { registerCard, registerView } from "../views.js";
import { clock, lasting, many } from "../words.js";

/** @import { Model } from "../model.js" */
/** @import { Page } from "../page.js" */
/** @import { At, Carried, CredentialRow, Inside, LoginRow, Note } from "../types.js" */

registerView("security", moment(securityView));
registerCard(clientCard);

const MAX_CLIENTS = 60;
const MAX_REFUSALS = 30;
const MAX_OF_CLIENT = 5;
const HANDSHAKE_FAILED = "SSL_HANDSHAKE_FAILED";
const REFUSALS = new Set(["authentication_failed", "authorization_denied", "tls_handshake_failed"]);

/** @param {Page} page */
function securityView(page) {
  const { model, at } = page;
  const brokers = brokersOf(model);
  return [
    h("h2", null, "Who is logged in where"),
    whereTree(page, brokers),
    unknownTree(page, brokers),
    h("h2", null, "Refused"),
    refusalsTree(page, refusalsUntil(model, at, MAX_REFUSALS)),
    credentialsTree(page),
  ];
}

/** @param {Model} model */
const brokersOf = (model) => [...model.brokers.keys()].filter((id) => id !== model.controllerNode);

// ------------------------------------------------------------------------------ who is where

/**
 * A row for each client and principal, a column for each broker.
 *
 * @param {Page} page
 * @param {number[]} brokers
 */
function whereTree(page, brokers) {
  const { model, at } = page;
  const rows = loginsAt(model, at);
  const subjects = Map.groupBy(rows, ({ client, principal }) => `${client} ${principal}`);
  if (!subjects.size) return h("p", { class: "dim" }, "No client has logged in yet.");
  const shown = [...subjects].slice(0, MAX_CLIENTS);
  return h(
    "div",
    { class: "scrolls", tabindex: 0, role: "group", "aria-label": "Logins by client and broker" },
    h(
      "table",
      { class: "logins" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { key: "client", scope: "col" }, "client"),
          brokers.map((id) => h("th", { key: id, scope: "col" }, headOf(page, id))),
        ),
      ),
      h(
        "tbody",
        null,
        shown.map(([key, logins]) =>
          h(
            "tr",
            { key },
            h(
              "th",
              { scope: "row" },
              logins[0].client || "a client without a name",
              h("br"),
              h("small", null, logins[0].principal || "no user named"),
            ),
            brokers.map((id) =>
              h(
                "td",
                { key: id },
                logins.filter(({ broker }) => broker === id).map((row) => loginTree(row, at)),
              ),
            ),
          ),
        ),
      ),
    ),
    subjects.size > shown.length
      ? h("p", { class: "dim" }, `and ${many(subjects.size - shown.length, "more client")}`)
      : null,
  );
}

/**
 * A broker's name, and whether it decides by older metadata.
 *
 * @param {Page} page
 * @param {number} broker
 * @returns {Inside}
 */
function headOf({ model, at }, broker) {
  const { state } = model.processAt(broker, at);
  const isLate = unknownTo(model, broker, at).length > 0;
  return [
    `broker ${broker}`,
    state && state !== "up" ? h("span", { class: "bad-text" }, ` ${state}`) : null,
    isLate ? h("b", { class: "warn-text" }, " older metadata") : null,
  ];
}

/**
 * What exists at a time, and logins that were refused.
 *
 * @param {Model} model
 * @param {number} at
 */
const loginsAt = (model, at) =>
  [...model.logins.values()].flatMap((rows) => {
    const row = rowAt(rows, at);
    return row && (row.connections || row.problem) ? [row] : [];
  });

/**
 * @param {At<LoginRow>} row
 * @param {number} at
 */
function loginTree(row, at) {
  const { listener, mechanism, connections, problem } = row;
  const how = mechanism ? `${listener}, ${mechanism}` : listener;
  return h(
    "div",
    { key: `${listener} ${row.client_id}`, class: "login" },
    connections ? h("span", { class: "good-text" }, `✓ ${many(connections, "connection")}`) : null,
    problem ? h("b", { class: "bad-text" }, `✗ ${problem}`) : null,
    h("small", { class: "dim" }, how, endWords(row, at)),
  );
}

/**
 * @param {LoginRow} row
 * @param {number} at
 */
const endWords = ({ connections, ends_ms: ends }, at) =>
  !connections || ends < 0
    ? ""
    : ends > at
      ? `, log in again within ${lasting(ends - at)}`
      : `, session over since ${lasting(at - ends)}`;

// --------------------------------------------------------------------------- older metadata

/** The changes of security, and the event by which a broker applies each.  @type {[string, string][]} */
const CHANGES = [
  ["acls_changed", "acls_applied"],
  ["config_changed", "credentials_applied"],
];

/**
 * The changes of ACLs and passwords that a broker had not applied at a time, oldest first.
 *
 * @param {Model} model
 * @param {number} broker
 * @param {number} at
 */
function unknownTo(model, broker, at) {
  const notes = model.notes.slice(0, lastAt(model.notes, at) + 1);
  return CHANGES.flatMap(([changed, applied]) => {
    const changes = notes.filter(
      ({ kind, event }) =>
        kind === changed && (kind === "acls_changed" || event.resource_type === "user"),
    );
    if (!changes.length) return [];
    // Metadata is applied in order, so a later change covers all before it.
    const causes = notes
      .filter(({ kind, event }) => kind === applied && event.broker === broker)
      .map(({ cause }) => changes.findIndex(({ id }) => id === cause));
    return changes.slice(Math.max(-1, ...causes) + 1);
  });
}

/**
 * @param {Page} page
 * @param {number[]} brokers
 */
function unknownTree(page, brokers) {
  const { model, at, began } = page;
  const late = brokers
    .map((id) => /** @type {const} */ ([id, unknownTo(model, id, at)]))
    .filter(([id, changes]) => changes.length && model.processAt(id, at).state === "up");
  if (!late.length) return null;
  return h(
    "section",
    { key: "unknown", class: "card", "aria-label": "Older metadata" },
    h("h3", null, "Brokers that decide by older metadata"),
    late.map(([id, changes]) =>
      h(
        "p",
        { key: id },
        h("b", { class: "warn-text" }, `broker ${id}`),
        " does not know yet: ",
        textsOf(changes, began),
      ),
    ),
  );
}

/**
 * `+0.700 s ACLs created: …; +0.900 s …`, equal texts once.
 *
 * @param {Note[]} notes
 * @param {number} began
 */
const textsOf = (notes, began) =>
  [
    ...new Set(notes.map(({ at, subject, text }) => `${clock(at, began)} ${subject}: ${text}`)),
  ].join("; ");

// ------------------------------------------------------------------------------ what expires

/** @param {Page} page */
function credentialsTree(page) {
  const { model, at } = page;
  const rows = [...model.credentials.values()].flatMap((each) => {
    const row = rowAt(each, at);
    return row && row.state !== "gone" ? [row] : [];
  });
  if (!rows.length) return null;
  return h(
    "section",
    { key: "expires", "aria-label": "What expires" },
    h("h2", null, "What expires"),
    h(
      "table",
      null,
      tableHead("of", "what", "state", "until"),
      h(
        "tbody",
        null,
        rows.slice(0, MAX_CLIENTS).map((row) => credentialTree(row, at)),
      ),
    ),
  );
}

/**
 * @param {At<CredentialRow>} row
 * @param {number} at
 */
function credentialTree({ kind, owner, name, state, until_ms: until }, at) {
  const isToken = kind === "delegation token";
  const isOver = isToken && until >= 0 && until < at;
  const words = isOver ? "expired" : state;
  const end =
    until < 0
      ? "unknown"
      : !isToken
        ? new Date(until).toISOString().slice(0, 10)
        : isOver
          ? `${lasting(at - until)} ago`
          : `in ${lasting(until - at)}`;
  return h(
    "tr",
    { key: `${kind} ${owner} ${name}` },
    h("th", { scope: "row" }, owner),
    h("td", null, isToken ? `delegation token ${name}` : `certificate at ${name}`),
    h("td", null, h("span", { class: `badge ${words === "valid" ? "good" : "bad"}` }, words)),
    h("td", null, end),
  );
}

// --------------------------------------------------------------------------------- refusals

/**
 * The newest refusals up to a time, newest first.
 *
 * @param {Model} model
 * @param {number} at
 * @param {number} most
 * @param {(note: Note) => boolean} wanted
 */
function refusalsUntil(model, at, most, wanted = () => true) {
  /** @type {Note[]} */
  const found = [];
  for (let i = lastAt(model.notes, at); i >= 0 && found.length < most; i--) {
    const note = model.notes[i];
    if (REFUSALS.has(note.kind) && wanted(note)) found.push(note);
  }
  return found;
}

/**
 * @param {Page} page
 * @param {Note[]} refusals
 */
function refusalsTree(page, refusals) {
  if (!refusals.length) return h("p", { class: "dim" }, "No client was refused.");
  return h(
    "ol",
    { class: "events" },
    refusals.map((note) => refusalTree(page, note)),
  );
}

/**
 * @param {Page} page
 * @param {Note} note
 */
function refusalTree({ model, began }, note) {
  const node = note.event.broker ?? note.event.node ?? -1;
  const unknown = node === model.controllerNode ? [] : unknownTo(model, node, note.at);
  return h(
    "li",
    { key: note.id, class: "bad" },
    h("time", null, clock(note.at, began)),
    `${note.subject}: ${namedText(model, note)}`,
    unknown.length
      ? h(
          "div",
          { class: "warn-text" },
          `Decided by older metadata: broker ${node} did not know yet: ${textsOf(unknown, began)}`,
        )
      : null,
  );
}

/**
 * The text of a refusal, with the client's name in place of its client.id.
 *
 * @param {Model} model
 * @param {Note} note
 */
function namedText(model, { text, event }) {
  const id = event.client_id;
  const rows = id ? [...model.logins.values()].find(([row]) => row.client_id === id) : null;
  return id && rows ? text.replace(`(${id} from`, `(${rows[0].client} from`) : text;
}

// ------------------------------------------------------------------------------- one client

/** @param {Carried["clients"][number]["errors"]} errors */
const sum = (errors) => errors.reduce((total, [, , , , count]) => total + count, 0);

/**
 * A client's logins, and what it was refused.
 *
 * @param {Page} page
 * @param {string} name
 */
function clientCard(page, name) {
  const { model, at } = page;
  const own = [...model.logins.values()].flat().filter(({ client }) => client === name);
  if (!own.length) return null;
  const ids = new Set(own.map((row) => row.client_id));
  const now = loginsAt(model, at).filter(({ client }) => client === name);
  const refusals = refusalsUntil(model, at, MAX_OF_CLIENT, ({ event }) =>
    ids.has(event.client_id ?? ""),
  );
  // A broker does not know who fails before the first byte; a run has it from the client itself.
  const errors = page.facts?.clients.find((each) => each.name === name)?.errors ?? [];
  const failed = errors.filter(([time, , error]) => error === HANDSHAKE_FAILED && time <= at);
  return h(
    "section",
    { key: "security", class: "card", "aria-label": "Security" },
    h("h3", null, "Logged in as"),
    now.length ? null : h("p", { class: "dim" }, "It is logged in nowhere."),
    now
      .sort((a, b) => a.broker - b.broker)
      .map((row) =>
        h(
          "div",
          { key: `${row.broker} ${row.listener} ${row.principal}`, class: "login" },
          `${row.principal || "no user named"} at broker ${row.broker} `,
          loginTree(row, at),
        ),
      ),
    refusals.length || failed.length ? h("h3", null, "Refused") : null,
    failed.length
      ? h(
          "p",
          { class: "bad-text" },
          `its TLS handshake failed ${many(sum(failed), "time")}, last at ${clock(failed.at(-1)?.[0] ?? 0, page.began)}`,
        )
      : null,
    refusals.length ? refusalsTree(page, refusals) : null,
  );
}
