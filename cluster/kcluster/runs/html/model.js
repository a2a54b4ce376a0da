// The embedded data of the run, with look-ups by time and cause.

window.addEventListener("error", (event) => {
  const bar = document.createElement("div");
  bar.id = "failure";
  bar.textContent = `Error in this page: ${event.message}`;
  document.body.prepend(bar);
});

const data = JSON.parse(document.getElementById("data").textContent);
const run = data.run;

// Notes as objects.  `mood` is the colour: "bad", "good" or "plain"; `after`: the indexes of the notes
// that this one caused.
const notes = data.notes.map(([at, kind, lane, subject, text, cause, short, mood], index) => (
  { at, kind: data.kinds[kind], lane, subject, text, cause, short, mood, index, after: [] }
));
for (const note of notes) {
  if (note.cause >= 0) notes[note.cause].after.push(note.index);
}

const QUIET = new Set([
  "became_leader", "became_follower", "broker_registered", "link_cut", "link_healed",
]);
/** A note, its cause, the cause of that, and so on. */
function causesOf(index) {
  const found = [];
  for (let at = index; at >= 0 && !found.includes(notes[at]); at = notes[at].cause) {
    found.push(notes[at]);
  }
  return found;
}

function cumulated(steps) {
  let sum = 0;
  return Float64Array.from(steps, (step) => (sum += step));
}

for (const partition of data.partitions) {
  for (const series of partition.series) {
    for (const name of ["t", "end", "hw"]) series[name] = cumulated(series[name]);
  }
  partition.times = partition.leaders.map((row) => row[0]);
  partition.windows = [];
  partition.anomalies = [];
}
/** Adjacent rows of equal value, merged into spans (from, to, value); `same` compares values. */
function spansOf(rows, valueOf, same = (a, b) => a === b) {
  const spans = [];
  for (const [place, row] of rows.entries()) {
    const value = valueOf(row), end = rows[place + 1]?.[0] ?? run.end, last = spans.at(-1);
    if (last && same(last[2], value)) last[1] = end;
    else spans.push([row[0], end, value]);
  }
  return spans;
}

const DELETED = -2;

for (const partition of data.partitions) {
  const rows = partition.leaders;
  // Leaders as (from, to, {leader, epoch}); members by broker as (from, to, isr | elr | out | "").
  partition.led = spansOf(rows, ([, leader, epoch]) => ({ leader, epoch }),
    (a, b) => a.leader === b.leader && a.epoch === b.epoch);
  partition.alive = spansOf(rows, ([, leader]) => leader !== DELETED).filter((span) => span[2]);
  partition.members = new Map(partition.replicas.map((broker) => [broker, spansOf(rows,
    ([, leader, , isr, elr]) => (leader === DELETED ? "" : isr.includes(broker) ? "isr"
      : elr.includes(broker) ? "elr" : "out"))]));
}
for (const found of data.windows) data.partitions[found.partition]?.windows.push(found);
for (const found of data.anomalies) data.partitions[found.partition]?.anomalies.push(found);

const brokersById = new Map(data.brokers.map((broker) => [broker.id, broker]));

const byLane = new Map();
for (const note of notes) {
  if (!note.lane) continue;
  if (!byLane.has(note.lane)) byLane.set(note.lane, []);
  byLane.get(note.lane).push(note);
}
const notesOf = (lane) => byLane.get(lane) ?? [];
const actions = notesOf("actions");

/** The last index whose value is at most `wanted`, or -1; `values` are ascending. */
function lastUntil(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The row of (ms, leader, epoch, ISR, ELR) in force at a time, if there is one. */
const registrationAt = (partition, at) => partition.leaders[lastUntil(partition.times, at)];

/** The span (from, to, text, note) that includes a time, if there is one.  The last one goes on after
 * the end of the run. */
const spanAt = (spans, at) => spans.find(
  (span) => span[0] <= at && (at < span[1] || span[1] >= run.end),
);

/** The events to read, in order: without repetitions and internal topics. */
const story = notes.filter(
  (note) => note.lane && !QUIET.has(note.kind) && !note.subject.startsWith("__"),
);
