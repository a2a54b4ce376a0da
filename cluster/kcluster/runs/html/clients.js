// The lanes of clients: records acked, failed, unknown and read, per bar of time.
// The height of a bar is the square root of its count, so that one record is visible beside hundreds.

function clientLane(client) {
  addWaiting(client);
  const sends = client.sent.length > 0 || client.ended.length > 0;
  const total = (rows, column) => rows.reduce((sum, row) => sum + row[column], 0);
  const sub = sends ? many(total(client.sent, 1), "record") + " sent"
    : client.reads.length ? `${many(total(client.reads, 1), "record")} read` : "";
  return {
    key: `c:${client.name}`, title: client.name, sub, height: 48,
    paint(surface) {
      const bars = barsOf(client), waits = waitsOf(client, surface.width);
      const most = [...bars.values()].reduce((top, bar) => Math.max(top, bar.all),
        waits.reduce((top, count) => Math.max(top, count), 4));
      const base = surface.height - 10, scale = (base - 4) / Math.sqrt(most);
      paintWaiting(surface, waits, base, scale);
      for (const [index, bar] of bars) paintBar(surface, index * barTime(), bar, base, scale);
      paintErrors(surface, client, base);
    },
    describe(at) {
      const cell = Math.max(barTime(), 1), from = Math.floor(at / cell) * cell;
      return clientLines(client, from, from + cell);
    },
  };
}

/** The number of records in flight at a time: those sent minus those that ended. */
function addWaiting(client) {
  const sums = (rows, count) => {
    let sum = 0;
    return rows.map((row) => (sum += count(row)));
  };
  const sentTimes = client.sent.map((row) => row[0]);
  const endedTimes = client.ended.map((row) => row[0]);
  const sent = sums(client.sent, (row) => row[1]);
  const ended = sums(client.ended, (row) => row[1] + row[2] + row[3]);
  client.waiting = (at) => (
    (sent[lastUntil(sentTimes, at)] ?? 0) - (ended[lastUntil(endedTimes, at)] ?? 0)
  );
}

/** The time span of one bar.  Bars are aligned to a grid of time, so they move with the view. */
const barTime = () => (view.to - view.from) / view.width * BAR_PX;

/** By index in the grid: the counts of the bars in view. */
function barsOf(client) {
  const cell = barTime(), bars = new Map();
  const bar = (at) => {
    const index = Math.floor(at / cell);
    let found = bars.get(index);
    if (!found) bars.set(index, (found = { acked: 0, failed: 0, unknown: 0, read: 0, all: 0 }));
    return found;
  };
  const inSight = (rows, add) => {
    for (const row of rows) {
      if (row[0] < view.from - cell || row[0] > view.to) continue;
      const found = bar(row[0]);
      add(found, row);
      found.all = found.acked + found.failed + found.unknown + found.read;
    }
  };
  inSight(client.ended, (found, row) => {
    found.acked += row[1];
    found.failed += row[2];
    found.unknown += row[3];
  });
  inSight(client.reads, (found, row) => { found.read += row[1]; });
  return bars;
}

function paintBar({ context, x }, from, bar, base, scale) {
  const x0 = x(from), height = Math.sqrt(bar.all) * scale;
  let y = base;
  for (const [name, colour] of [["acked", "good"], ["read", "read"], ["unknown", "warn"],
    ["failed", "bad"]]) {
    const part = bar[name] / bar.all * height;
    if (!part) continue;
    context.fillStyle = colours[colour];
    context.fillRect(x0, y - part, BAR_PX - 0.6, part);
    y -= part;
  }
}

/** The number of records in flight at each pixel. */
function waitsOf(client, width) {
  if (!client.sent.length) return [];
  const pixel = barTime() / BAR_PX;
  return Array.from({ length: Math.ceil(width) }, (_, x) => client.waiting(view.from + x * pixel));
}

/** Behind the bars: records in flight. */
function paintWaiting({ context }, waits, base, scale) {
  context.fillStyle = colours.wait;
  waits.forEach((count, x) => {
    const height = Math.sqrt(count) * scale;
    if (count > 1) context.fillRect(x, base - height, 1, height);
  });
}

/** Markers of errors, at the bottom. */
function paintErrors({ context, width, x }, client, base) {
  context.fillStyle = colours.bad;
  let last = -9;
  for (const [at] of client.errors) {
    const middle = x(at);
    if (middle < -4 || middle > width + 4 || middle - last < 4) continue;
    last = middle;
    context.beginPath();
    context.moveTo(middle - 3.5, base + 8);
    context.lineTo(middle + 3.5, base + 8);
    context.lineTo(middle, base + 2);
    context.fill();
  }
}
