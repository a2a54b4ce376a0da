// @ts-check
// The record of a cluster as the page keeps it: rows by partition, client and broker, over time.
//
// Any moment is looked up by binary search, so looking back costs no more than looking at now.
// Everything is bounded: what is oldest is thinned or dropped first.

/** @import { AppendRow, AskingRow, At, Batch, BeliefRow, Broker, Call, Client, CommitRow, Controller, CredentialRow, EpochsRow, EventFields, ExchangeRow, GroupRow, LeaderRow, Link, LoginRow, MessageRow, MoveRow, Note, NoteRow, Process, Registration, Rows, Runs, SessionRow, TransactionStateRow, WaitingRow } from "./types.js" */

/** The node id of the controller; clients have far higher ones. */
export const CONTROLLER = 3000;
const MAX_POINTS = 400_000;
const MAX_NOTES = 40_000;
const MAX_EXCHANGES = 30_000;
const MAX_APPENDS = 60_000;
const MAX_STATES = 2_000;
const MAX_NAMES = 5_000;
/** The newest appends by which partitions are compared. */
const RECENT = 20;
/** The most calls of one API between two nodes. */
const MAX_CALLS = 400;

/**
 * The last index whose row is not after `at`, or -1.
 *
 * @param {readonly { at: number }[]} rows ascending in `at`
 * @param {number} at
 */
export function lastAt(rows, at) {
  let low = 0,
    high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The row in force at a time; undefined before the first.
 *
 * @template {{ at: number }} Row
 * @param {readonly Row[]} rows
 * @param {number} at
 * @returns {Row | undefined}
 */
export const rowAt = (rows, at) => rows[lastAt(rows, at)];

/**
 * The value of a name, made if there is none.  The oldest name goes once there are too many.
 *
 * @template Key, Value
 * @param {Map<Key, Value>} table
 * @param {Key} name
 * @param {() => Value} make
 * @param {number} [most]
 * @returns {Value}
 */
function kept(table, name, make, most = Infinity) {
  const found = table.get(name);
  if (found !== undefined) return found;
  const made = make();
  table.set(name, made);
  const [oldest] = table.keys();
  if (table.size > most) table.delete(oldest);
  return made;
}

/**
 * Append a row in order of time: live rows come in order, except for some of the same moment.
 *
 * @template {{ at: number }} Row
 * @param {Row[]} rows
 * @param {Row} row
 */
function insert(rows, row) {
  const last = rows.at(-1);
  if (!last || last.at <= row.at) rows.push(row);
  else rows.splice(lastAt(rows, row.at) + 1, 0, row);
}

/** A replica over time: log end, high watermark, last stable offset. */
export class Series {
  constructor() {
    this.size = 0;
    this.values = new Float64Array(4 * 16);
  }

  /**
   * @param {number} at
   * @param {number} end
   * @param {number} mark
   * @param {number} stable
   */
  add(at, end, mark, stable) {
    if (this.size && this.values[4 * (this.size - 1)] > at) return;
    if (4 * this.size === this.values.length) {
      const wider = new Float64Array(2 * this.values.length);
      wider.set(this.values);
      this.values = wider;
    }
    this.values.set([at, end, mark, stable], 4 * this.size++);
  }

  /**
   * The place of the last point that is not after a time; -1 before the first.
   *
   * @param {number} at
   */
  place(at) {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(middle) <= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** @param {number} place */
  at(place) {
    return this.values[4 * place];
  }
  /** @param {number} place */
  end(place) {
    return this.values[4 * place + 1];
  }
  /** @param {number} place */
  mark(place) {
    return this.values[4 * place + 2];
  }

  /**
   * What it is at a time; null before the first point.
   *
   * @param {number} at
   */
  find(at) {
    const place = this.place(at);
    if (place < 0) return null;
    const stable = this.values[4 * place + 3];
    return { at: this.at(place), end: this.end(place), mark: this.mark(place), stable };
  }

  /** Drop every second point of the older half, except before a decrease: truncations stay. */
  thin() {
    if (this.size < 64) return;
    const { values, size } = this;
    let kept = 0;
    for (let i = 0; i < size; i++) {
      const falls = i + 1 < size && values[4 * (i + 1) + 1] < values[4 * i + 1];
      const fell = i > 0 && values[4 * i + 1] < values[4 * (i - 1) + 1];
      if (i > size / 2 || i % 2 === 0 || falls || fell) {
        values.copyWithin(4 * kept++, 4 * i, 4 * i + 4);
      }
    }
    this.size = kept;
  }
}

/** One partition: registrations, replicas by broker, batches, epochs as runs by broker. */
export class Partition {
  /**
   * @param {string} topic
   * @param {number} number
   */
  constructor(topic, number) {
    this.topic = topic;
    this.number = number;
    this.name = `${topic}-${number}`;
    this.internal = topic.startsWith("__");
    /** @type {Registration[]} */
    this.leaders = [];
    /** @type {Map<number, Series>} */
    this.series = new Map();
    /** @type {Batch[]} */
    this.appends = [];
    /** @type {Map<number, { at: number, start: number, epochs: Runs }[]>} */
    this.epochs = new Map();
  }
}

export class Model {
  constructor() {
    /** @type {number | null} */
    this.began = null;
    this.until = 0;
    /** Whether it holds a whole run, of which nothing is dropped. */
    this.isWhole = false;
    /** @type {Map<string, Partition>} */
    this.partitions = new Map();
    /** @type {Map<number, Broker>} */
    this.brokers = new Map();
    /** @type {Controller[]} */
    this.controller = [];
    /** @type {Map<string, Link>} */
    this.links = new Map();
    /** @type {Note[]} */
    this.notes = [];
    /** @type {Map<string, Note>} */
    this.noteById = new Map();
    /** @type {Map<string, Client>} */
    this.clients = new Map();
    /** @type {Map<string, At<GroupRow>[]>} */
    this.groups = new Map();
    /** @type {Map<string, At<TransactionStateRow>[]>} */
    this.transactions = new Map();
    /** @type {Map<string, At<CommitRow>[]>} */
    this.commits = new Map();
    /** @type {Map<string, At<LoginRow>[]>} */
    this.logins = new Map();
    /** @type {Map<string, At<CredentialRow>[]>} */
    this.credentials = new Map();
    /**
     * The calls of one API from one node to another, by `source>destination API`.
     *
     * @type {Map<string, Call[]>}
     */
    this.calls = new Map();
    /**
     * The calls of nodes that have no answer yet.
     *
     * @type {Map<string, Call>}
     */
    this.openCalls = new Map();
    /**
     * The records of producers that had no outcome, as often as they were read.
     *
     * @type {{ at: number, rows: WaitingRow[] }[]}
     */
    this.waiting = [];
    this.points = 0;
    /** @type {Partition | null} */
    this.last = null;
    /** @type {Partition[]} */
    this.sorted = [];
  }

  /**
   * Rows of the stream or of a run directory, by their fields in RunRecord.
   *
   * @param {Rows} rows
   * @param {number} until
   */
  add(rows, until) {
    // What an event says about a partition stands beside its registrations.
    for (const row of rows.leaders ?? []) this.#leader(row);
    for (const row of rows.notes ?? []) this.#note(row);
    for (const row of rows.moves ?? []) this.#move(row);
    for (const row of rows.appends ?? []) this.#append(row);
    for (const row of rows.epochs ?? []) this.#epochs(row);
    for (const row of rows.exchanges ?? []) this.#exchange(row);
    for (const row of rows.beliefs ?? []) this.#belief(row);
    for (const row of rows.groups ?? []) this.#keep(this.groups, row.group, row);
    for (const row of rows.transaction_states ?? []) {
      this.#keep(this.transactions, row.transactional_id, row);
    }
    for (const row of rows.commits ?? []) this.#commit(row);
    for (const row of rows.logins ?? []) {
      this.#keep(
        this.logins,
        `${row.client_id} ${row.broker} ${row.listener} ${row.principal}`,
        row,
      );
    }
    for (const row of rows.credentials ?? []) {
      this.#keep(this.credentials, `${row.kind} ${row.owner} ${row.name}`, row);
    }
    for (const row of rows.messages ?? []) this.#message(row);
    for (const row of rows.sessions ?? []) this.#session(row);
    for (const row of rows.asking ?? []) this.#ask(row);
    this.#wait(
      Array.from(rows.waiting ?? [], (row) => ({ ...row })),
      until,
    );
    this.until = Math.max(this.until, until);
    this.#bound(this.notes, MAX_NOTES);
    if (this.noteById.size > 2 * MAX_NOTES) {
      this.noteById = new Map(this.notes.map((note) => [note.id, note]));
    }
    if (this.points > MAX_POINTS && !this.isWhole) this.#thin();
  }

  /**
   * @param {string} topic
   * @param {number} number
   */
  partition(topic, number) {
    // Rows of one partition often follow each other.
    if (this.last?.topic !== topic || this.last.number !== number) {
      const make = () => new Partition(topic, number);
      this.last = kept(this.partitions, `${topic}-${number}`, make);
    }
    return this.last;
  }

  /**
   * @param {number} id
   * @returns {Broker}
   */
  broker(id) {
    const count = this.brokers.size;
    const found = kept(this.brokers, id, () => ({ id, process: [], fenced: [], sessions: [] }));
    if (this.brokers.size > count) {
      this.brokers = new Map([...this.brokers].sort(([a], [b]) => a - b));
    }
    return found;
  }

  /**
   * @param {string} name
   * @returns {Client}
   */
  client(name) {
    const make = () => ({
      name,
      exchanges: [],
      beliefs: new Map(),
      asking: new Map(),
      fetched: new Set(),
    });
    return kept(this.clients, name, make, MAX_NAMES / 10);
  }

  // ------------------------------------------------------------------------------ looking

  /**
   * `up`, `paused`, `down`, or "" if the broker does not exist yet; with how and since when.
   *
   * @param {number} id
   * @param {number} at
   * @returns {Process}
   */
  processAt(id, at) {
    return (
      rowAt(this.brokers.get(id)?.process ?? [], at) ?? { at: 0, state: "", how: "", note: null }
    );
  }

  /**
   * @param {number} id
   * @param {number} at
   */
  isFenced(id, at) {
    return rowAt(this.brokers.get(id)?.fenced ?? [], at)?.fenced ?? false;
  }

  /** Whether its clients come by TLS or SASL, or are asked for rights. */
  get isSecured() {
    return this.logins.size > 0 || this.credentials.size > 0;
  }

  /**
   * A broker's session at the controller, which ends without a heartbeat; null if there is none.
   *
   * @param {number} id
   * @param {number} at
   */
  sessionAt(id, at) {
    const broker = this.brokers.get(id);
    const session = rowAt(broker?.sessions ?? [], at);
    if (!broker || !session || at > session.expires) return null;
    const fencing = rowAt(broker.fenced, at);
    return fencing?.fenced && fencing.at >= session.at ? null : session;
  }

  /**
   * A producer's records without an outcome, in all partitions or in one; a record whose send()
   * blocks before it has chosen a partition may be meant for each of its topic.
   *
   * @param {string} client
   * @param {number} at
   * @param {Partition | null} partition
   * @returns {{ count: number, oldest: number }}
   */
  waitingAt(client, at, partition = null) {
    const rows = (rowAt(this.waiting, at)?.rows ?? []).filter(
      (row) =>
        row.client === client &&
        (!partition ||
          (row.topic === partition.topic && [partition.number, -1].includes(row.partition))),
    );
    return {
      count: rows.reduce((sum, row) => sum + row.count, 0),
      oldest: Math.min(at, ...rows.map((row) => row.oldest_ms)),
    };
  }

  /** The node of the controller, which is no broker to show. */
  get controllerNode() {
    return this.controller.at(-1)?.leader ?? CONTROLLER;
  }

  /**
   * Names of partitions in order, those of internal topics last or not at all.
   *
   * @param {boolean} withInternal
   */
  partitionNames(withInternal) {
    if (this.sorted.length !== this.partitions.size) {
      this.sorted = [...this.partitions.values()].sort(
        (a, b) =>
          Number(a.internal) - Number(b.internal) ||
          Number(a.topic > b.topic) - Number(a.topic < b.topic) ||
          a.number - b.number,
      );
    }
    const shown = this.sorted.filter((each) => withInternal || !each.internal);
    return (shown.length ? shown : this.sorted).map((each) => each.name);
  }

  /**
   * The partition with the most records in the newest appends; null if there are none.
   *
   * @returns {Partition | null}
   */
  busiest() {
    let found = null,
      most = 0;
    for (const partition of this.partitions.values()) {
      const last = partition.appends.at(-1);
      if (partition.internal || !last) continue;
      const recent = partition.appends[Math.max(partition.appends.length - RECENT, 0)];
      const rate = (last.last - recent.base + 1) / Math.max(this.until - recent.at, 1);
      if (rate > most) [found, most] = [partition, rate];
    }
    return found;
  }

  /**
   * @param {number} at
   * @returns {Controller}
   */
  controllerAt(at) {
    return rowAt(this.controller, at) ?? { at, state: "up", leader: null };
  }

  /**
   * {cut, slow} of one direction of a link.
   *
   * @param {number} source
   * @param {number} destination
   * @param {number} at
   */
  linkAt(source, destination, at) {
    const link = this.links.get(`${source}>${destination}`);
    if (!link) return { cut: false, slow: "" };
    return { cut: rowAt(link.cuts, at)?.cut ?? false, slow: rowAt(link.shapes, at)?.text ?? "" };
  }

  /**
   * @param {Partition} partition
   * @param {number} at
   * @returns {Registration | null}
   */
  registrationAt(partition, at) {
    return rowAt(partition.leaders, at) ?? null;
  }

  /**
   * The runs [epoch, start offset] of a replica's log, ascending.
   *
   * @param {Partition} partition
   * @param {number} broker
   * @param {number} at
   * @returns {Runs}
   */
  runsAt(partition, broker, at) {
    const own = partition.epochs.get(broker);
    if (own) return rowAt(own, at)?.epochs ?? [];
    // A record without epochs of replicas: those that its leaders appended.
    /** @type {Runs} */
    const runs = [];
    for (const batch of partition.appends) {
      if (batch.at > at) break;
      let last = runs.at(-1);
      while (last && last[1] >= batch.base && last[0] < batch.epoch) {
        runs.pop();
        last = runs.at(-1);
      }
      if (!last || last[0] < batch.epoch) runs.push([batch.epoch, batch.base]);
    }
    return runs;
  }

  /**
   * The start of a replica's log: records before it were deleted.
   *
   * @param {Partition} partition
   * @param {number} broker
   * @param {number} at
   */
  startAt(partition, broker, at) {
    return rowAt(partition.epochs.get(broker) ?? [], at)?.start ?? 0;
  }

  /**
   * The batch with an offset in an epoch, as its leader appended it.
   *
   * @param {Partition} partition
   * @param {number} offset
   * @param {number} epoch
   */
  batchOf(partition, offset, epoch) {
    return (
      partition.appends.findLast(
        (batch) => batch.epoch === epoch && batch.base <= offset && offset <= batch.last,
      ) ?? null
    );
  }

  /** @param {Note} note */
  causesOf(note) {
    /** @type {Note[]} */
    const chain = [];
    for (
      let each = /** @type {Note | undefined} */ (note);
      each && !chain.includes(each);
      each = this.noteById.get(each.cause ?? "")
    ) {
      chain.push(each);
    }
    return chain;
  }

  /**
   * Events to read, newest first, up to a time.
   *
   * @param {number} at
   * @param {number} most
   * @returns {Note[]}
   */
  storyUntil(at, most) {
    const found = [];
    for (let i = lastAt(this.notes, at); i >= 0 && found.length < most; i--) {
      if (this.notes[i].isStory) found.push(this.notes[i]);
    }
    return found;
  }

  /**
   * The same as [note, how many more]: what happened to many partitions at once is one entry.
   *
   * @param {number} at
   * @param {number} most
   * @returns {[Note, number][]}
   */
  foldedUntil(at, most) {
    const found = new Map();
    for (let i = lastAt(this.notes, at), tries = 0; i >= 0 && tries < 5000; i--, tries++) {
      const note = this.notes[i];
      if (!note.isStory) continue;
      const key =
        note.event.partition === undefined ? note.id : `${note.kind} ${note.at} ${note.cause}`;
      const same = found.get(key);
      if (same) same[1] += 1;
      else if (found.size === most) break;
      else found.set(key, [note, 0]);
    }
    return [...found.values()];
  }

  // ------------------------------------------------------------------------------- adding

  /**
   * Drop the oldest rows once there are a quarter too many.
   *
   * @param {unknown[]} rows
   * @param {number} most
   */
  #bound(rows, most) {
    if (!this.isWhole && rows.length > most * 1.25) rows.splice(0, rows.length - most);
  }

  /**
   * @template {{ at_ms: number }} Row
   * @param {Map<string, At<Row>[]>} table
   * @param {string} name
   * @param {Row} row
   */
  #keep(table, name, row) {
    const rows = kept(table, name, () => /** @type {At<Row>[]} */ ([]), MAX_NAMES);
    insert(rows, { ...row, at: row.at_ms });
    this.#bound(rows, MAX_STATES);
  }

  /** @param {LeaderRow} row */
  #leader(row) {
    const partition = this.partition(row.topic, row.partition);
    for (const id of row.replicas) this.broker(id);
    insert(partition.leaders, {
      at: row.at_ms,
      leader: row.leader,
      epoch: row.leader_epoch,
      isr: row.isr,
      elr: row.elr,
      replicas: row.replicas,
      deleted: false,
    });
    this.#bound(partition.leaders, MAX_STATES);
  }

  /** @param {MoveRow} row */
  #move(row) {
    const { series } = this.partition(row.topic, row.partition);
    const one = kept(series, row.broker, () => new Series());
    one.add(row.at_ms, row.log_end_offset, row.high_watermark, row.last_stable_offset ?? -1);
    this.points += 1;
  }

  #thin() {
    this.points = 0;
    for (const partition of this.partitions.values()) {
      for (const one of partition.series.values()) {
        one.thin();
        this.points += one.size;
      }
    }
  }

  /** @param {AppendRow} row */
  #append(row) {
    const { appends } = this.partition(row.topic, row.partition);
    const last = appends.at(-1);
    // The stream repeats appends of the last second.
    if (
      last &&
      (row.epoch < last.epoch || (row.epoch === last.epoch && row.base_offset <= last.base))
    ) {
      return;
    }
    insert(appends, {
      at: row.at_ms,
      broker: row.broker,
      epoch: row.epoch,
      base: row.base_offset,
      last: row.last_offset,
      client: row.client,
      isr: row.isr,
    });
    this.#bound(appends, Math.max(MAX_APPENDS / Math.max(this.partitions.size, 1), 200));
  }

  /** @param {EpochsRow} row */
  #epochs(row) {
    const { epochs } = this.partition(row.topic, row.partition);
    const rows = kept(epochs, row.broker, () => []);
    insert(rows, { at: row.at_ms, start: row.start_offset, epochs: row.epochs });
    this.#bound(rows, MAX_STATES);
  }

  /** @param {ExchangeRow} row */
  #exchange(row) {
    const { exchanges, fetched } = this.client(row.client);
    if (row.api.endsWith("Fetch") && row.topic && fetched.size < MAX_NAMES)
      fetched.add(`${row.broker} ${row.topic}-${row.partition}`);
    const same = (/** @type {ExchangeRow} */ other) =>
      other.at_ms === row.at_ms &&
      other.api === row.api &&
      other.broker === row.broker &&
      other.first === row.first &&
      other.topic === row.topic &&
      other.partition === row.partition;
    // The stream repeats what happened in a moment in which the clock was paused.
    for (let i = lastAt(exchanges, row.asked_ms); i >= 0 && exchanges[i].at === row.asked_ms; i--) {
      if (same(exchanges[i])) return;
    }
    insert(exchanges, { ...row, at: row.asked_ms });
    this.#bound(exchanges, Math.max(MAX_EXCHANGES / this.clients.size, 100));
  }

  /** @param {AskingRow} row */
  #ask({ client, broker, at_ms, partitions }) {
    const { asking, fetched } = this.client(client);
    asking.set(broker, at_ms);
    for (const name of partitions) if (fetched.size < MAX_NAMES) fetched.add(`${broker} ${name}`);
  }

  /** @param {BeliefRow} row */
  #belief(row) {
    const { beliefs } = this.client(row.client);
    this.#keep(beliefs, `${row.topic}-${row.partition}`, row);
  }

  /** @param {CommitRow} row */
  #commit(row) {
    if (row.error) return;
    const key = `${row.group} ${row.topic}-${row.partition}`;
    this.#keep(this.commits, key, row);
  }

  /** @param {MessageRow} row */
  #message(row) {
    const [from, to] = row.is_answer
      ? [row.destination, row.source]
      : [row.source, row.destination];
    const key = `${from}>${to} ${row.api}`;
    const open = `${key} ${row.number}`;
    const sent = row.sent_us / 1000,
      arrives = row.arrives_us < 0 ? null : row.arrives_us / 1000;
    const call = this.openCalls.get(open);
    if (!row.is_answer) {
      if (call?.at === sent) return; // another stream has had it already
      const made = { at: sent, from, to, api: row.api, arrives, answer: null };
      this.openCalls.set(open, made);
      const calls = kept(this.calls, key, () => /** @type {Call[]} */ ([]), MAX_NAMES);
      insert(calls, made);
      this.#bound(calls, MAX_CALLS);
    } else if (call) {
      call.answer = { at: sent, arrives, parts: row.parts };
      this.openCalls.delete(open);
    }
    if (this.openCalls.size > MAX_NAMES) this.openCalls.clear();
  }

  /** @param {SessionRow} row */
  #session(row) {
    const { sessions } = this.broker(row.broker);
    if (sessions.at(-1)?.at === row.at_ms) return;
    insert(sessions, { at: row.at_ms, expires: row.expires_ms });
    this.#bound(sessions, MAX_STATES);
  }

  /**
   * @param {WaitingRow[]} rows
   * @param {number} at
   */
  #wait(rows, at) {
    if (!rows.length && !this.waiting.at(-1)?.rows.length) return;
    if (!rows.length) insert(this.waiting, { at, rows });
    // A finished run has the rows of all times at once.
    for (let first = 0, next = 0; first < rows.length; first = next) {
      const time = rows[first].at_ms;
      while (next < rows.length && rows[next].at_ms === time) next += 1;
      insert(this.waiting, { at: time, rows: rows.slice(first, next) });
    }
    this.#bound(this.waiting, MAX_NOTES);
  }

  /** @param {NoteRow} row */
  #note(row) {
    const id = String(row.id);
    if (this.noteById.has(id)) return;
    const { event } = row;
    const note = {
      id,
      at: row.at_ms,
      kind: event.kind,
      event,
      cause: row.cause ? String(row.cause) : null,
      subject: row.subject,
      text: row.text,
      mood: row.mood ?? "plain",
      lane: row.lane ?? "",
      short: row.short ?? "",
      isQuiet: QUIET.has(event.kind),
      isStory: !QUIET.has(event.kind) && !row.subject.startsWith("__"),
    };
    if (this.began === null || (note.at < this.began && !this.isWhole)) this.began = note.at;
    this.noteById.set(id, note);
    insert(this.notes, note);
    this.#apply(note);
  }

  /**
   * What an event says about brokers, the controller and links.
   *
   * @param {Note} note
   */
  #apply(note) {
    const { at, kind, event } = note;
    const { broker = -1, leader = null, source = -1, destination = -1, links = [] } = event;
    const state = PROCESS_OF[kind];
    if (state) insert(this.broker(broker).process, { at, state, how: event.how ?? "", note });
    if (kind === "broker_fenced" || kind === "broker_unfenced") {
      insert(this.broker(broker).fenced, { at, fenced: kind === "broker_fenced", note });
      // The record of a run has no heartbeats, but this one: the last before a session ended.
      const { silent_ms: silent } = event;
      if (this.isWhole && silent)
        insert(this.broker(broker).sessions, { at: at - silent, expires: at });
    }
    if (kind === "controller_down") insert(this.controller, { at, state: "down", leader: null });
    if (kind === "controller_elected") {
      insert(this.controller, { at, state: "up", leader, epoch: event.epoch });
    }
    if (kind === "topic_deleted") this.#delete(event.topic ?? "", at);
    if (kind === "link_cut" || kind === "link_healed") {
      insert(this.#link(source, destination).cuts, { at, cut: kind === "link_cut", note });
    }
    if (kind === "network_shaped") {
      const still = new Set((event.remaining ?? []).map(String));
      for (const link of links) {
        const text = event.undone && !still.has(String(link)) ? "" : shapeText(event);
        insert(this.#link(link[0], link[1]).shapes, { at, text });
      }
    }
  }

  /**
   * A topic that is created again in the same ms exists: its first registration stays the last row.
   *
   * @param {string} topic
   * @param {number} at
   */
  #delete(topic, at) {
    const gone = { at, deleted: true, leader: -1, epoch: -1, isr: [], elr: [], replicas: [] };
    for (const { topic: name, leaders } of this.partitions.values()) {
      if (name !== topic) continue;
      const last = rowAt(leaders, at);
      const isNew = last?.at === at && last.epoch === 0;
      leaders.splice(lastAt(leaders, at) + (isNew ? 0 : 1), 0, gone);
    }
  }

  /**
   * @param {number} source
   * @param {number} destination
   * @returns {Link}
   */
  #link(source, destination) {
    const key = `${source}>${destination}`;
    const make = () => ({ source, destination, cuts: [], shapes: [] });
    return kept(this.links, key, make);
  }
}

/** @type {{ [kind: string]: string }} */
const PROCESS_OF = {
  broker_started: "up",
  broker_down: "down",
  disk_full: "down",
  disk_replaced: "down",
  broker_paused: "paused",
  broker_resumed: "up",
};
const QUIET = new Set([
  "became_leader",
  "became_follower",
  "broker_registered",
  "link_cut",
  "link_healed",
  "telemetry_pushed",
]);
/** @param {EventFields} event */
function shapeText(event) {
  const parts = [];
  if (event.latency_us) parts.push(`+${event.latency_us / 1000} ms`);
  if (event.loss) parts.push(`${Math.round(event.loss * 100)} % lost`);
  if (event.bytes_per_s) parts.push(`${event.bytes_per_s.toLocaleString("en")} B/s`);
  return parts.join(", ") || "slow";
}
