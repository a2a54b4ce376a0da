// The record of a cluster as the page keeps it: rows by partition, client and broker, over time.
//
// Any moment is looked up by binary search, so looking back costs no more than looking at now.
// Everything is bounded: what is oldest is thinned or dropped first.

const MAX_POINTS = 400_000;
const MAX_NOTES = 40_000;
const MAX_EXCHANGES = 30_000;
const MAX_APPENDS = 60_000;
const MAX_STATES = 2_000;
const MAX_NAMES = 5_000;

/** The last index whose row is not after `at`, or -1; `rows` are ascending in `at`. */
function lastAt(rows, at) {
  let low = 0,
    high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const rowAt = (rows, at) => rows[lastAt(rows, at)];

/** Drop the oldest rows once there are a quarter too many. */
function bound(rows, most) {
  if (rows.length > most * 1.25) rows.splice(0, rows.length - most);
}

/** Forget the oldest names once there are too many. */
function boundNames(table, most) {
  if (table.size > most) table.delete(table.keys().next().value);
}

/** Append a row in order of time: live rows come in order, except for some of the same moment. */
function insert(rows, row) {
  if (!rows.length || rows.at(-1).at <= row.at) rows.push(row);
  else rows.splice(lastAt(rows, row.at) + 1, 0, row);
}

/** A replica over time: log end, high watermark, last stable offset. */
class Series {
  constructor() {
    this.size = 0;
    this.values = new Float64Array(4 * 16);
  }

  add(at, end, mark, stable) {
    if (this.size && this.values[4 * (this.size - 1)] > at) return;
    if (4 * this.size === this.values.length) {
      const wider = new Float64Array(2 * this.values.length);
      wider.set(this.values);
      this.values = wider;
    }
    this.values.set([at, end, mark, stable], 4 * this.size++);
  }

  /** {at, end, mark, stable} at a time; null before the first. */
  find(at) {
    let low = 0,
      high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.values[4 * middle] <= at) low = middle + 1;
      else high = middle;
    }
    if (!low) return null;
    const [time, end, mark, stable] = this.values.subarray(4 * (low - 1), 4 * low);
    return { at: time, end, mark, stable };
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
class Partition {
  constructor(topic, number) {
    this.topic = topic;
    this.number = number;
    this.name = `${topic}-${number}`;
    this.internal = topic.startsWith("__");
    this.leaders = [];
    this.series = new Map();
    this.appends = [];
    this.epochs = new Map();
  }
}

class Model {
  constructor() {
    this.began = null;
    this.until = 0;
    this.partitions = new Map();
    this.brokers = new Map();
    this.controller = [];
    this.links = new Map();
    this.notes = [];
    this.noteById = new Map();
    this.clients = new Map();
    this.groups = new Map();
    this.transactions = new Map();
    this.commits = new Map();
    this.points = 0;
    this.appendCount = 0;
    this.changes = 0;
  }

  /** Rows of the stream or of a run directory, by their fields in RunRecord. */
  add(rows, until) {
    this.changes += 1;
    for (const row of rows.notes ?? []) this.#note(row);
    for (const row of rows.leaders ?? []) this.#leader(row);
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
    this.until = Math.max(this.until, until);
    bound(this.notes, MAX_NOTES);
    if (this.noteById.size > 2 * MAX_NOTES) {
      this.noteById = new Map(this.notes.map((note) => [note.id, note]));
    }
    if (this.points > MAX_POINTS) this.#thin();
  }

  partition(topic, number) {
    const name = `${topic}-${number}`;
    let found = this.partitions.get(name);
    if (!found) this.partitions.set(name, (found = new Partition(topic, number)));
    return found;
  }

  broker(id) {
    let found = this.brokers.get(id);
    if (!found) {
      this.brokers.set(id, (found = { id, process: [], fenced: [] }));
      this.brokers = new Map([...this.brokers].sort(([a], [b]) => a - b));
    }
    return found;
  }

  client(name) {
    let found = this.clients.get(name);
    if (!found) {
      this.clients.set(name, (found = { name, exchanges: [], beliefs: new Map() }));
      boundNames(this.clients, MAX_NAMES / 10);
    }
    return found;
  }

  // ------------------------------------------------------------------------------ looking

  /** `up`, `paused`, `down`, or "" if the broker does not exist yet; with how and since when. */
  processAt(id, at) {
    return rowAt(this.brokers.get(id)?.process ?? [], at) ?? { state: "", at: 0, how: "" };
  }

  isFenced(id, at) {
    return rowAt(this.brokers.get(id)?.fenced ?? [], at)?.fenced ?? false;
  }

  controllerAt(at) {
    return rowAt(this.controller, at) ?? { state: "up", leader: null };
  }

  /** {cut, slow} of one direction of a link. */
  linkAt(source, destination, at) {
    const link = this.links.get(`${source}>${destination}`);
    if (!link) return { cut: false, slow: "" };
    return { cut: rowAt(link.cuts, at)?.cut ?? false, slow: rowAt(link.shapes, at)?.text ?? "" };
  }

  registrationAt(partition, at) {
    return rowAt(partition.leaders, at) ?? null;
  }

  /** The runs [epoch, start offset] of a replica's log, ascending. */
  runsAt(partition, broker, at) {
    const own = partition.epochs.get(broker);
    if (own) return rowAt(own, at)?.epochs ?? [];
    // A record without epochs of replicas: those that its leaders appended.
    const runs = [];
    for (const batch of partition.appends) {
      if (batch.at > at) break;
      while (runs.length && runs.at(-1)[1] >= batch.base && runs.at(-1)[0] < batch.epoch)
        runs.pop();
      if (!runs.length || runs.at(-1)[0] < batch.epoch) runs.push([batch.epoch, batch.base]);
    }
    return runs;
  }

  /** The start of a replica's log: records before it were deleted. */
  startAt(partition, broker, at) {
    return rowAt(partition.epochs.get(broker) ?? [], at)?.start ?? 0;
  }

  /** The batch with an offset in an epoch, as its leader appended it. */
  batchOf(partition, offset, epoch) {
    return (
      partition.appends.findLast(
        (batch) => batch.epoch === epoch && batch.base <= offset && offset <= batch.last,
      ) ?? null
    );
  }

  causesOf(note) {
    const chain = [];
    for (let each = note; each && !chain.includes(each); each = this.noteById.get(each.cause)) {
      chain.push(each);
    }
    return chain;
  }

  /** Events to read, newest first, up to a time. */
  storyUntil(at, most) {
    const found = [];
    for (let i = lastAt(this.notes, at); i >= 0 && found.length < most; i--) {
      if (this.notes[i].isStory) found.push(this.notes[i]);
    }
    return found;
  }

  /** The same as [note, how many more]: what happened to many partitions at once is one entry. */
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

  #keep(table, name, row) {
    let rows = table.get(name);
    if (!rows) {
      table.set(name, (rows = []));
      boundNames(table, MAX_NAMES);
    }
    insert(rows, { ...row, at: row.at_ms });
    bound(rows, MAX_STATES);
  }

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
    });
    bound(partition.leaders, MAX_STATES);
  }

  #move(row) {
    const { series } = this.partition(row.topic, row.partition);
    let one = series.get(row.broker);
    if (!one) series.set(row.broker, (one = new Series()));
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
    this.appendCount += 1;
    bound(appends, Math.max(MAX_APPENDS / Math.max(this.partitions.size, 1), 200));
  }

  #epochs(row) {
    const { epochs } = this.partition(row.topic, row.partition);
    let rows = epochs.get(row.broker);
    if (!rows) epochs.set(row.broker, (rows = []));
    insert(rows, { at: row.at_ms, start: row.start_offset, epochs: row.epochs });
    bound(rows, MAX_STATES);
  }

  #exchange(row) {
    const { exchanges } = this.client(row.client);
    const same = (other) =>
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
    bound(exchanges, Math.max(MAX_EXCHANGES / this.clients.size, 100));
  }

  #belief(row) {
    const { beliefs } = this.client(row.client);
    this.#keep(beliefs, `${row.topic}-${row.partition}`, row);
  }

  #commit(row) {
    if (row.error) return;
    const key = `${row.group} ${row.topic}-${row.partition}`;
    this.#keep(this.commits, key, row);
  }

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
      isStory: false,
    };
    note.isStory = !QUIET.has(note.kind) && !note.subject.startsWith("__");
    if (this.began === null || note.at < this.began) this.began = note.at;
    this.noteById.set(id, note);
    insert(this.notes, note);
    this.#apply(note);
  }

  /** What an event says about brokers, the controller and links. */
  #apply({ at, kind, event }) {
    const process = PROCESS_OF[kind];
    if (process)
      insert(this.broker(event.broker).process, { at, state: process, how: event.how ?? "" });
    if (kind === "broker_fenced" || kind === "broker_unfenced") {
      insert(this.broker(event.broker).fenced, { at, fenced: kind === "broker_fenced" });
    }
    if (kind === "controller_down") insert(this.controller, { at, state: "down", leader: null });
    if (kind === "controller_elected") {
      insert(this.controller, { at, state: "up", leader: event.leader, epoch: event.epoch });
    }
    if (kind === "topic_deleted") {
      for (const partition of this.partitions.values()) {
        if (partition.topic === event.topic)
          insert(partition.leaders, {
            at,
            deleted: true,
            isr: [],
            elr: [],
            replicas: [],
            leader: -1,
          });
      }
    }
    if (kind === "link_cut" || kind === "link_healed") {
      insert(this.#link(event.source, event.destination).cuts, { at, cut: kind === "link_cut" });
    }
    if (kind === "network_shaped") {
      const still = new Set((event.remaining ?? []).map(String));
      for (const link of event.links) {
        const text = event.undone && !still.has(String(link)) ? "" : shapeText(event);
        insert(this.#link(...link).shapes, { at, text });
      }
    }
  }

  #link(source, destination) {
    const key = `${source}>${destination}`;
    let found = this.links.get(key);
    if (!found) this.links.set(key, (found = { source, destination, cuts: [], shapes: [] }));
    return found;
  }
}

const PROCESS_OF = {
  broker_started: "up",
  broker_down: "down",
  disk_full: "down",
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
function shapeText(event) {
  const parts = [];
  if (event.latency_us) parts.push(`+${event.latency_us / 1000} ms`);
  if (event.loss) parts.push(`${Math.round(event.loss * 100)} % lost`);
  if (event.bytes_per_s) parts.push(`${event.bytes_per_s.toLocaleString("en")} B/s`);
  return parts.join(", ") || "slow";
}
