// Tooltips, and the elements that hold text.  Text is always inserted as text, never as HTML.

const MAX_CAUSES = 5;

/** An element with a class and with texts or elements inside. */
function element(tag, className, ...inside) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...inside.filter((part) => part !== null && part !== ""));
  return made;
}

const set = (ids) => `{${ids.join(", ")}}`;
const stamp = (at) => element("time", "", `+${clock(at)}`);

function dot(note) {
  const made = element("span", "dot");
  made.style.background = colours[note.mood];
  return made;
}

/** A note and below it the chain of its causes, each shown once. */
function noteWithCauses(note) {
  const block = element("div", "note");
  block.append(element("div", "", dot(note), stamp(note.at), `${note.subject}: ${note.text}`));
  for (const cause of causesOf(note.index).slice(1)) {
    block.append(
      element("div", "why", "because ", stamp(cause.at), `${cause.subject}: ${cause.text}`),
    );
  }
  return block;
}

/** The span of a broker's state, with its cause. */
function spanLine(span, words) {
  const because = span[3] >= 0 ? `: ${notes[span[3]].text}` : "";
  const until = span[1] >= run.end ? "to the end of the run" : `until +${clock(span[1])}`;
  return `${words}, since +${clock(span[0])} ${until}${because}`;
}

function brokerLines(broker, at) {
  const lines = [];
  const state = spanAt(broker.states, at);
  lines.push(state ? spanLine(state, state[2]) : "does not exist yet");
  const fenced = spanAt(broker.fenced, at);
  if (fenced) lines.push(spanLine(fenced, "fenced"));
  const cut = spanAt(broker.cuts, at);
  if (cut) lines.push(spanLine(cut, cut[2]));
  const led = data.partitions.filter(
    (each) => !each.internal && registrationAt(each, at)?.[1] === broker.id,
  );
  const some = led.slice(0, 8).map((each) => each.name).join(", ");
  lines.push(led.length ? `leads ${some}${led.length > 8 ? `, ${led.length - 8} more` : ""}`
    : "leads no partition");
  return lines;
}

/** The first links of a chain, as lines of a tooltip. */
function causeLines(chain) {
  const lines = chain.slice(0, MAX_CAUSES).map(([at, text]) => ({ at, why: text }));
  if (chain.length > MAX_CAUSES) {
    lines.push({ why: `and ${chain.length - MAX_CAUSES} more: click to see all` });
  }
  return lines;
}

function windowLine(found) {
  const errors = found.errors.length ? ` (${found.errors.join(", ")})` : "";
  const until = found.over ? "" : ", to the end of the run";
  return `no ${found.kind} for ${lasting(found.to - found.from)} from +${clock(found.from)}`
    + `${until}${errors}: ${found.clients.join(", ")}`;
}

/** Where a replica stands beside its leader: `down, 50 ahead`.  The words are those of the data. */
function standingLabel(partition, series, at) {
  const [, leader, , isr, elr] = registrationAt(partition, at), { broker } = series;
  const { base, ahead, behind } = data.labels;
  const state = spanAt(brokersById.get(broker)?.states ?? [], at)?.[2];
  const process = state === "up" || state === "paused" ? state : "down";
  const membership = broker === leader ? "leader" : isr.includes(broker) ? "isr"
    : elr.includes(broker) ? "elr" : "out";
  const end = endAt(series, at);
  const leaderEnd = endAt(partition.series.find((each) => each.broker === leader), at);
  const more = leaderEnd === undefined ? 0 : end - leaderEnd;
  const difference = more ? `, ${Math.abs(more).toLocaleString("en")} ${more > 0 ? ahead : behind}` : "";
  return base[process][membership] + difference;
}

/** The log end of a replica at a time; undefined if it is unknown. */
const endAt = (series, at) => series?.end[lastUntil(series.t, at)];

function partitionLines(partition, at) {
  const lines = [];
  const row = registrationAt(partition, at);
  if (!row) return ["does not exist yet"];
  const [, leader, epoch, isr, elr] = row;
  if (leader === DELETED) return ["deleted with its topic"];
  lines.push(leader < 0 ? "no leader" : `leader ${leader}, epoch ${epoch}`);
  lines.push(`ISR ${set(isr)}${elr.length ? `, ELR ${set(elr)}` : ""}`
    + `, replicas ${set(partition.replicas)}`);
  for (const series of partition.series) {
    const place = lastUntil(series.t, at);
    if (place < 0) continue;
    lines.push(`broker ${series.broker}, ${standingLabel(partition, series, at)}:`
      + ` log end ${series.end[place].toLocaleString("en")}`
      + `, high watermark ${series.hw[place].toLocaleString("en")}`);
  }
  for (const found of partition.windows) {
    if (found.from <= at && at <= found.to) {
      lines.push({ mood: found.kind === "writes" ? "bad" : "warn", text: windowLine(found) });
      lines.push(...causeLines(found.chain));
    }
  }
  return lines;
}

/** The activity of a client during one bar. */
function clientLines(client, from, to) {
  const lines = [];
  const within = (rows) => rows.filter((row) => from <= row[0] && row[0] < to);
  const sum = (rows, column) => rows.reduce((total, row) => total + row[column], 0);
  const ended = within(client.ended);
  const names = ["acked", "failed", "unknown"];
  const counts = names.map((name, column) => [sum(ended, column + 1), name]);
  const shown = counts.filter(([count]) => count).map(([count, name]) => `${count} ${name}`);
  if (shown.length) {
    const slowest = Math.max(...ended.map((row) => row[4]));
    lines.push(`${shown.join(", ")}; the slowest took ${lasting(slowest)}`);
  }
  const sent = sum(within(client.sent), 1);
  if (sent) lines.push(`${many(sent, "record")} sent`);
  const read = sum(within(client.reads), 1);
  if (read) lines.push(`${many(read, "record")} read`);
  const waiting = client.waiting(to);
  if (waiting > 0) lines.push(`${many(waiting, "record")} awaiting a response`);
  for (const [, api, error, about, count] of within(client.errors).slice(0, 8)) {
    const times = count > 1 ? `, ${count} times` : "";
    lines.push({ mood: "bad", text: `received ${error} for ${api} ${about}${times}` });
  }
  return lines.length ? lines : ["no activity"];
}

/** Elements for the lines of a tooltip: texts, {mood, text}, or {at, why}. */
function tipLines(lines) {
  return lines.map((line) => {
    if (typeof line === "string") return element("div", "", line);
    if (line.why) {
      return element("div", "why", line.at === undefined ? null : stamp(line.at), line.why);
    }
    return element("div", `${line.mood}-text`, line.text);
  });
}
