// The sidebar: the selection with its causes, the findings, and the events in view.

const MAX_EVENTS = 150;
let chosen = null;

/** The links of the selection, numbered on the lanes: {at, lane, note}. */
const chosenLinks = () => chosen?.links ?? [];

/** The links of an anomaly or a window, from the embedded rows (ms, text, note). */
function linksOf(chain, partition) {
  return chain.map(([at, text, note]) => (
    { at, text, note, lane: (note >= 0 && notes[note].lane) || `p${partition}` }
  ));
}

function choose(what) {
  chosen = what;
  const place = document.getElementById("chosen");
  place.hidden = what === null;
  place.replaceChildren();
  if (what !== null) {
    const close = element("button", "", "×");
    close.id = "close";
    close.title = "Close (Esc)";
    close.addEventListener("click", () => choose(null));
    place.append(close, element("h3", what.mood ? `${what.mood}-text` : "", what.title));
    if (what.at !== undefined) place.append(element("div", "dim", `at +${clock(what.at)}`));
    place.append(...tipLines(what.lines));
    if (what.links.length) place.append(chainList(what.links, what.mood));
    if (what.after?.length) place.append(...consequences(what.after));
    document.getElementById("side").scrollTop = 0;
    const times = what.links.map((link) => link.at).concat(what.at ?? []);
    bringIntoView(times);
  }
  openPanel("side", what !== null);
  redraw();
}

/** Widen the view until it includes these times. */
function bringIntoView(times) {
  const first = Math.min(...times), last = Math.max(...times);
  if (!times.length || (first >= view.from && last <= view.to)) return;
  const margin = Math.max((last - first) * 0.15, (view.to - view.from) * 0.1);
  show(Math.min(first - margin, view.from), Math.max(last + margin, view.to));
}

function chainList(links, kind) {
  const list = element("ol", `chain ${kind === "bad" ? "" : "calm"}`);
  for (const link of links) {
    const item = element("li", "", stamp(link.at), link.text);
    item.addEventListener("click", () => reveal(link.at));
    list.append(item);
  }
  return list;
}

function consequences(indexes) {
  const shown = indexes.map((index) => notes[index]).filter((note) => !QUIET.has(note.kind));
  if (!shown.length) return [];
  const head = element("h2", "", `consequences (${shown.length.toLocaleString("en")})`);
  return [head, ...shown.slice(0, 30).map((note) => eventLine(note, ""))];
}

/** Select a note: its causes as numbered links, oldest first, and its consequences. */
function chooseNote(note) {
  const links = causesOf(note.index).reverse().map((each) => (
    { at: each.at, text: `${each.subject}: ${each.text}`, note: each.index, lane: each.lane }
  ));
  choose({
    title: `${note.subject}: ${note.kind.replaceAll("_", " ")}`, at: note.at, note: note.index,
    mood: note.mood === "bad" ? "bad" : "", lines: [], links, after: note.after,
  });
}

function eventLine(note, more) {
  const line = element("div", "event", dot(note), stamp(note.at), `${note.subject}: ${note.text}`);
  if (more) line.append(element("span", "dim", more));
  line.addEventListener("click", () => {
    reveal(note.at);
    chooseNote(note);
  });
  return line;
}

// --------------------------------------------------------------------------------- findings

function chooseAnomaly(found) {
  choose({
    title: `${found.name}: ${found.where}`, at: found.at, mood: "bad",
    lines: [found.text, ...(found.allowed ? [`allowed by ${found.allowed}`] : [])],
    links: linksOf(found.chain, found.partition),
  });
  scrollToLane(`p${found.partition}`);
}

function chooseWindow(found) {
  const links = linksOf(found.chain, found.partition);
  const mood = found.kind === "writes" ? "bad" : "warn";
  const margin = (found.to - found.from) * 0.4;
  const times = [found.from, found.to, ...links.map((link) => link.at)];
  show(Math.min(...times) - margin, Math.max(...times) + margin);
  choose({
    title: `no ${found.kind}: ${data.partitions[found.partition]?.name ?? ""}`, at: found.from,
    mood, lines: [windowLine(found)], links,
  });
  scrollToLane(`p${found.partition}`);
}

/** Select what the application did wrong: where the log has the records. */
function chooseProblem(title, text) {
  for (const [place, partition] of data.partitions.entries()) {
    const mark = partition.marks.find((each) => each[5] === text);
    if (!mark) continue;
    choose({ title, at: mark[2], mood: "bad", lines: [text], links: [] });
    scrollToLane(`p${place}`);
  }
}

function scrollToLane(key) {
  document.querySelector(`.row[data-lane="${key}"]`)?.scrollIntoView({ block: "nearest" });
}

function card(kind, title, text, onClick) {
  const made = element("div", `finding ${kind}`, element("b", "", title), element("div", "", text));
  if (onClick) made.addEventListener("click", onClick);
  return made;
}

function fillFindings() {
  const place = document.getElementById("findings");
  place.append(element("h2", "", "findings"));
  for (const text of data.degraded) {
    const colon = text.indexOf(": ");
    place.append(card("warn", text.slice(0, colon), text.slice(colon + 2)));
  }
  for (const text of run.failures) place.append(card("bad", "not as expected", text));
  for (const found of data.anomalies) {
    const title = `${found.name}, ${found.where}: ${many(found.count, "record")}`;
    place.append(card("bad", title, found.text, () => chooseAnomaly(found)));
  }
  for (const found of data.violations) {
    place.append(card("bad", `${found.name}: ${found.subject}`, found.text, () => choose({
      title: found.name, at: found.at, mood: "bad", lines: [found.text], links: [],
    })));
  }
  for (const text of data.problems.slice(0, 60)) {
    const colon = text.indexOf(": ");
    const title = `the application: ${text.slice(0, colon)}`;
    place.append(card("bad", title, text.slice(colon + 2), () => chooseProblem(title, text)));
  }
  if (!data.anomalies.length && !data.violations.length && !data.problems.length) {
    place.append(card("good", run.outcome, run.reason));
  }
  const longest = [...data.windows].sort((a, b) => b.to - b.from - (a.to - a.from));
  for (const found of longest.slice(0, 60)) {
    const name = data.partitions[found.partition]?.name ?? "";
    place.append(card(found.kind === "writes" ? "warn" : "", `${name}: no ${found.kind} for `
      + lasting(found.to - found.from), `from +${clock(found.from)}`, () => chooseWindow(found)));
  }
  if (longest.length > 60) place.append(element("div", "dim", `and ${longest.length - 60} more`));
}

// ----------------------------------------------------------------------------------- events

let listed = "";

/** The notes in view; those of partitions with the same kind, time and cause share a line. */
function foldedInView() {
  const folded = new Map();
  for (const note of story) {
    if (note.at < view.from || note.at > view.to) continue;
    const alike = `${note.kind} ${note.at} ${note.cause}`;
    const key = note.lane.startsWith("p") ? alike : note.index;
    const first = folded.get(key);
    if (first) first.more += 1;
    else folded.set(key, { note, more: 0 });
  }
  return [...folded.values()].sort((a, b) => a.note.at - b.note.at);
}

function fillEvents() {
  const now = `${Math.round(view.from)} ${Math.round(view.to)}`;
  if (now === listed) return;
  listed = now;
  const place = document.getElementById("events"), folded = foldedInView();
  const lines = folded.slice(0, MAX_EVENTS).map(({ note, more }) => (
    eventLine(note, more ? `  and ${more} more of this kind` : "")
  ));
  const rest = folded.length - lines.length;
  if (rest > 0) lines.push(element("div", "dim", `and ${rest.toLocaleString("en")} more: zoom in`));
  place.replaceChildren(
    element("h2", "", `events in view (${folded.length.toLocaleString("en")})`), ...lines,
  );
}

/** Select the next event after the selection or the left edge of the view; -1: the previous. */
function stepEvent(direction) {
  const from = chosen?.note ?? null;
  let place;
  if (from !== null) place = story.indexOf(notes[from]) + direction;
  else if (direction > 0) place = story.findIndex((note) => note.at >= Math.max(view.from, 0));
  else place = story.findLastIndex((note) => note.at <= view.to);
  const note = story[place];
  if (!note) return;
  reveal(note.at);
  chooseNote(note);
  scrollToLane(note.lane);
}
