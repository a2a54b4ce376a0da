// The page: the rows of the lanes, drawing, tooltip and header.  Starts at the end of this file.

const ALL_SHOWN_UP_TO = 12;
const TIP_PX = 6;
const rows = [];
const sheet = document.getElementById("sheet"), tip = document.getElementById("tip");
const cross = document.getElementById("cross"), axis = document.getElementById("axis");
const map = document.getElementById("map");
const onScreen = new IntersectionObserver((entries) => {
  for (const entry of entries) entry.target.lane.visible = entry.isIntersecting;
  redraw();
}, { root: document.getElementById("scroll"), rootMargin: "200px" });

// --------------------------------------------------------------------------------------- rows

function addRow(place, lane) {
  const title = element("b", "", lane.title);
  title.title = lane.title;
  if (lane.colour) {
    const swatch = element("i", "swatch");
    swatch.style.background = lane.colour;
    title.prepend(swatch);
  }
  const label = element("div", "label", title, lane.sub ? element("span", "", lane.sub) : null);
  const canvas = element("canvas", "");
  canvas.style.height = `${lane.height}px`;
  const row = element("div", `row${lane.tall ? " can-grow" : ""}`, label,
    element("div", "plot", canvas));
  row.dataset.lane = lane.key;
  Object.assign(lane, { row, canvas, visible: false, found: notesOf(lane.key) });
  row.lane = lane;
  if (lane.tall) {
    label.title = "Expand or collapse";
    label.addEventListener("click", () => {
      const tall = row.classList.toggle("tall");
      canvas.style.height = `${tall ? lane.tall : lane.height}px`;
      redraw();
    });
  }
  place.append(row);
  rows.push(lane);
  onScreen.observe(row);
}

function fillRows() {
  const place = document.getElementById("rows");
  const group = (text) => place.append(element("div", "row group", text));
  addRow(place, actionsLane());
  addRow(place, controlLane());
  group("brokers");
  for (const broker of data.brokers) addRow(place, brokerLane(broker));
  group("partitions: leader, ISR, log end and high watermark of each replica");
  data.partitions.forEach((partition, at) => addRow(place, partitionLane(partition, at)));
  if (data.clients.length) group("clients: records acked, failed, unknown, read; errors received");
  for (const client of data.clients) addRow(place, clientLane(client));
  if (data.applications.length) group("the application: records processed, commits, what it missed");
  for (const application of data.applications) addRow(place, applicationLane(application));
}

/** Show the partitions that changed, those that the checkboxes add, or those that match the filter. */
function choosePartitions() {
  const words = document.getElementById("filter").value.trim().toLowerCase();
  const withQuiet = document.getElementById("quiet").checked;
  const withInternal = document.getElementById("internal").checked;
  for (const { partition, row } of rows) {
    if (!partition) continue;
    const shown = (withInternal || !partition.internal) && (withQuiet || partition.changed);
    row.hidden = words ? !partition.name.toLowerCase().includes(words) : !shown;
    row.style.display = row.hidden ? "none" : "";
  }
  redraw();
}

function setUpPartitions() {
  const ours = data.partitions.filter((partition) => !partition.internal);
  const quiet = ours.filter((partition) => !partition.changed).length;
  const internal = data.partitions.length - ours.length;
  document.getElementById("quiet").checked = ours.length <= ALL_SHOWN_UP_TO;
  const set = (id, count, text) => {
    document.getElementById(id).hidden = !count;
    document.querySelector(`#${id} span`).textContent = `${text} (${count.toLocaleString("en")})`;
  };
  set("with-quiet", quiet, "unchanged");
  set("with-internal", internal, "internal");
  document.getElementById("find").hidden = data.partitions.length < 2;
  for (const id of ["filter", "quiet", "internal"]) {
    document.getElementById(id).addEventListener("input", choosePartitions);
  }
  choosePartitions();
}

// ------------------------------------------------------------------------------------ drawing

function drawAll() {
  view.width = Math.max(axis.clientWidth, 1);
  drawMap();
  drawAxis();
  for (const lane of rows) if (lane.visible) drawLane(lane);
  fillEvents();
  const span = view.to - view.from;
  const step = niceStep(span / 100);
  document.getElementById("span").textContent =
    `+${clock(Math.max(view.from, 0), step)} to +${clock(Math.min(view.to, run.end), step)}`
    + ` (${lasting(Math.min(view.to, run.end) - Math.max(view.from, 0))})`;
}

function drawLane(lane) {
  const surface = prepared(lane.canvas);
  if (!surface) return;
  surface.x = xOf;
  paintActionLines(surface);
  lane.paint(surface);
  chosenLinks().forEach((link, place) => {
    if (link.lane === lane.key) paintNumber(surface, link, place + 1);
  });
}

/** The number of a link of the selected chain. */
function paintNumber({ context, height }, link, number) {
  const same = chosenLinks().filter((each) => each.lane === link.lane && each.at === link.at);
  const x = xOf(link.at) + same.indexOf(link) * 15, y = Math.min(13, height / 2);
  context.fillStyle = chosen.mood === "bad" ? colours.bad : colours.accent;
  context.strokeStyle = colours.back;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, 8, 0, Math.PI * 2);
  context.fill();
  context.stroke();
  context.fillStyle = colours.back;
  context.font = `700 ${FONT}`;
  context.textAlign = "center";
  context.fillText(String(number), x, y + 0.5);
  context.textAlign = "start";
  context.font = FONT;
}

function drawAxis() {
  const surface = prepared(axis);
  if (!surface) return;
  const { context, width, height } = surface;
  const step = niceStep((view.to - view.from) / width * 84);
  context.textAlign = "center";
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    if (at < 0 || at > run.end) continue;
    const x = Math.round(xOf(at)) + 0.5;
    box(context, x - 0.5, x + 0.5, height - 5, 5, colours.dim);
    context.fillStyle = colours.dim;
    const half = context.measureText(clock(at, step)).width / 2;
    context.fillText(clock(at, step), Math.min(Math.max(x, half + 1), width - half - 1), 9);
  }
  context.textAlign = "start";
}

/** The overview of the run: acked and read records as columns, unavailability, actions, the view. */
function drawMap() {
  const surface = prepared(map);
  if (!surface) return;
  const { context, width, height } = surface;
  const x = (at) => (at - WHOLE.from) / (WHOLE.to - WHOLE.from) * width;
  paintColumns(context, x, width, height);
  for (const found of data.windows) {
    context.globalAlpha = 0.8;
    box(context, x(found.from), x(found.to), height - 4, 4,
      found.kind === "writes" ? colours.bad : colours.warn);
    context.globalAlpha = 1;
  }
  for (const note of actions) diamond(context, x(note.at), 6, 3.5, colours[note.mood]);
  const x0 = x(view.from), x1 = Math.max(x(view.to), x0 + 2);
  context.globalAlpha = 0.55;
  box(context, 0, x0, 0, height, colours.line);
  if (x1 < width) box(context, x1, width, 0, height, colours.line);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1;
  if (x1 - x0 < width) context.strokeRect(x0 + 0.5, 0.5, x1 - x0 - 1, height - 1);
}

function paintColumns(context, x, width, height) {
  const COLUMN = 3, hills = new Float64Array(Math.ceil(width / COLUMN) + 1);
  const add = (at, count) => { hills[Math.max(Math.floor(x(at) / COLUMN), 0)] += count; };
  for (const client of data.clients) {
    for (const row of client.ended) add(row[0], row[1]);
    for (const row of client.reads) add(row[0], row[1]);
  }
  const most = Math.sqrt(hills.reduce((top, count) => Math.max(top, count), 1));
  context.fillStyle = colours.gone;
  hills.forEach((count, place) => {
    const tall = Math.sqrt(count) / most * (height - 16);
    context.fillRect(place * COLUMN, height - 4 - tall, COLUMN, tall);
  });
}

// ---------------------------------------------------------------------------------------- tooltip

const laneOf = (event) => event.target.closest?.(".row")?.lane;

/** The notes of a lane closest to a time, within a few pixels. */
function notesNear(lane, at) {
  const reach = (view.to - view.from) / view.width * TIP_PX;
  let best = reach, found = [];
  for (const note of lane.found) {
    const far = Math.abs(note.at - at);
    if (far > best || QUIET.has(note.kind)) continue;
    if (far < best) found = [];
    best = far;
    found.push(note);
  }
  return found;
}

function hover(event, at) {
  const lane = laneOf(event);
  const place = sheet.getBoundingClientRect();
  cross.style.display = "block";
  cross.style.left = `${event.clientX - place.left}px`;
  if (!lane) {
    tip.hidden = true;
    return;
  }
  const reach = (view.to - view.from) / view.width * TIP_PX;
  const near = notesNear(lane, at);
  const lines = tipLines(lane.describe(at, reach));
  const noted = near.slice(0, 5).map(noteWithCauses);
  if (near.length > 5) noted.push(element("div", "dim", `and ${near.length - 5} more`));
  tip.hidden = !lines.length && !noted.length;
  tip.replaceChildren(element("h4", "", `${lane.title}  +${clock(at)}`), ...lines, ...noted);
  placeTip(event);
}

function placeTip(event) {
  if (tip.hidden) return;
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + 16 + width < window.innerWidth;
  tip.style.left = `${Math.max(right ? event.clientX + 16 : event.clientX - width - 16, 4)}px`;
  tip.style.top = `${Math.max(Math.min(event.clientY + 14, window.innerHeight - height - 6), 4)}px`;
}

function leave() {
  tip.hidden = true;
  cross.style.display = "none";
}

/** Select the anomaly, the note, or else the unavailability window under a click. */
function pick(event, at) {
  const lane = laneOf(event);
  leave();
  if (!lane) return;
  const reach = (view.to - view.from) / view.width * TIP_PX;
  const anomaly = lane.partition?.anomalies.find((found) => Math.abs(found.at - at) <= reach);
  if (anomaly) return chooseAnomaly(anomaly);
  const near = notesNear(lane, at);
  if (near.length) return chooseNote(near[0]);
  const outage = lane.partition?.windows.find((found) => found.from <= at && at <= found.to);
  if (outage) return chooseWindow(outage);
  choose(null);
}

// --------------------------------------------------------------------------------------- header

function fillHead() {
  const head = document.getElementById("head"), counts = run.counts;
  head.append(
    element("h1", "", run.name), badge(),
    element("span", "facts", [
      data.problems.length ? `cluster ${run.outcome}: ${run.reason}` : run.reason, run.passed ? "as expected" : "NOT as expected", `${run.clock} clock`,
      `seed ${run.seed}`, lasting(run.end),
    ].filter(Boolean).join(" · ")),
  );
  const about = element("div", "");
  about.id = "about";
  if (run.story) about.append(element("p", "story", run.story));
  const line = element("div", "counts");
  for (const [name, count] of Object.entries(counts)) {
    line.append(element("span", "", element("b", "", count.toLocaleString("en")), ` ${name}`));
  }
  if (run.replay) line.append(element("span", "", "replay: ", element("code", "", run.replay)));
  about.append(line);
  head.append(about);
}

function fillLegend() {
  const legend = document.getElementById("legend");
  const key = (background, text) => {
    const mark = element("i", "");
    mark.style.background = background;
    legend.append(element("span", "", mark, text));
  };
  const lines = (colour, way) => (
    `repeating-linear-gradient(${way}deg, ${colour} 0 2px, transparent 2px 5px)`
  );
  key(lines("var(--bad)", -45), "no writes");
  key(lines("var(--warn)", 45), "no reads");
  key("var(--good)", "acked");
  key("var(--bad)", "failed, fenced");
  key("var(--warn)", "unknown");
  key("var(--read)", "read");
  if (data.applications.length) {
    key("var(--bad)", "records that the application missed, in the log where they were appended");
  }
  key("var(--wait)", "awaiting a response (bar height: square root of records)");
  legend.append(element("span", "", "strips below a leader: replicas in the ISR; hollow: in the ELR"),
    element("span", "", "wheel: zoom · drag: zoom to selection · shift+drag or shift+wheel: pan · "
      + "keys: arrows, + − 0 · n, p: next, previous event · double-click: whole run"));
}

function begin() {
  readColours();
  fillHead();
  fillRows();
  fillFindings();
  fillLegend();
  setUpPartitions();
  fromAddress();
  const plot = () => axis.getBoundingClientRect();
  watchPointer(sheet, document.getElementById("brush"), plot, { hover, leave, pick });
  watchMap(map);
  watchKeys({ n: () => stepEvent(1), p: () => stepEvent(-1), Escape: () => {
    choose(null);
    closePanels();
  } });
  const buttons = {
    in: () => zoom(0.5), out: () => zoom(2), all: showAll, next: () => stepEvent(1),
    before: () => stepEvent(-1),
  };
  for (const [id, onClick] of Object.entries(buttons)) {
    document.getElementById(id).addEventListener("click", onClick);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
  window.addEventListener("hashchange", fromAddress);
  document.getElementById("scroll").addEventListener("scroll", leave);
  watchSize();
  new ResizeObserver(redraw).observe(document.getElementById("scroll"));
  redraw();
}

begin();
