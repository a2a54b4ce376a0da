// The lanes: each paints itself into a canvas and describes what it shows at a time.
//
// A lane: key, title, sub, height; tall (its height when expanded, if it can be); paint(surface),
// where a surface is {context, width, height, x: ms -> px}; describe(at, reach): lines of a tooltip,
// where `reach` is the time span of a few pixels.

const BAR_PX = 3;

/** Faint lines across all lanes at the times of actions. */
function paintActionLines({ context, width, height, x }) {
  context.save();
  context.globalAlpha = 0.45;
  context.setLineDash([2, 3]);
  let last = -9;
  for (const note of actions) {
    const at = Math.round(x(note.at)) + 0.5;
    if (at < 0 || at > width || at - last < 2) continue;
    last = at;
    context.strokeStyle = colours[note.mood];
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, height);
    context.stroke();
  }
  context.restore();
}

/** Markers of notes.  Notes within a few pixels share one, in the colour of the worst. */
function paintNotes(surface, found, y, size) {
  const rank = { bad: 2, good: 1, plain: 0 };
  let group = null;
  const flush = () => {
    if (group) diamond(surface.context, group.at, y, size, colours[group.mood]);
  };
  for (const note of found) {
    const at = surface.x(note.at), kind = note.mood;
    if (at < -size || at > surface.width + size) continue;
    if (group && at - group.at < size * 1.5) {
      if (rank[kind] > rank[group.mood]) group.mood = kind;
    } else {
      flush();
      group = { at, mood: kind };
    }
  }
  flush();
}

// ------------------------------------------------------------------------------------ actions

function actionsLane() {
  const LEVELS = actions.length <= 4 ? 2 : actions.length <= 12 ? 3 : 4, STEP = 16;
  return {
    key: "actions", title: "faults and steps", sub: "actions on the cluster",
    height: LEVELS * STEP + 14,
    paint({ context, width, height, x }) {
      const ends = new Array(LEVELS).fill(-1e9);
      for (const group of actionGroups(x, width)) {
        const words = group.text + (group.count > 1 ? ` +${group.count - 1}` : "");
        const long = context.measureText(words).width + 16;
        const toLeft = group.at + long > width && group.at > width / 2;
        const begin = toLeft ? group.at - long : group.at;
        const level = ends.findIndex((end) => end < begin);
        if (level < 0) {
          diamond(context, group.at, height - 6, 3.5, colours[group.mood]);
          continue;
        }
        const y = 3 + STEP / 2 + level * STEP;
        diamond(context, group.at, y, 5, colours[group.mood]);
        ends[level] = Math.max(group.at, begin + long) + 4;
        context.fillStyle = colours.text;
        context.fillText(words, toLeft ? begin + 4 : group.at + 8, y);
      }
    },
    describe: () => [],
  };
}

/** The actions in view; those of one kind on the same pixel are grouped. */
function actionGroups(x, width) {
  const groups = [];
  for (const note of actions) {
    const at = x(note.at), last = groups.at(-1);
    if (at < -4 || at > width + 4) continue;
    if (last && at - last.at < 1.5 && last.kind === note.kind && last.text === note.short) {
      last.count += 1;
    } else {
      groups.push({ at, kind: note.kind, text: note.short, mood: note.mood, count: 1 });
    }
  }
  return groups;
}

function controlLane() {
  const found = notesOf("control").filter((note) => !QUIET.has(note.kind));
  return {
    key: "control", title: "controller, groups", sub: "", height: 24,
    paint: (surface) => paintNotes(surface, found, 12, 4.5),
    describe: () => [],
  };
}

// ---------------------------------------------------------------------------------- brokers

function brokerLane(broker) {
  const colour = brokerColour(broker.id), found = notesOf(`b${broker.id}`);
  return {
    key: `b${broker.id}`, title: `broker ${broker.id}`, colour,
    sub: broker.rack ? `rack ${broker.rack}` : "", height: 34,
    paint(surface) {
      const { context, x } = surface;
      for (const span of broker.states) paintState(surface, span, colour);
      context.save();
      clipToSpans(surface, broker.states.filter(([, , what]) => what === "up" || what === "paused"));
      for (const span of broker.cuts) paintCut(surface, span);
      context.restore();
      for (const [from, to] of broker.fenced) {
        box(context, x(from), x(to), 25, 4, colours.bad);
      }
      paintNotes(surface, found.filter((note) => !QUIET.has(note.kind)), 27, 4);
    },
    describe: (at) => brokerLines(broker, at),
  };
}

function paintState({ context, x }, [from, to, what], colour) {
  const x0 = x(from), x1 = x(to);
  if (what === "up") {
    box(context, x0, x1, 6, 16, colour);
    return;
  }
  if (what === "paused") {
    context.globalAlpha = 0.3;
    box(context, x0, x1, 6, 16, colour);
    context.globalAlpha = 1;
    box(context, x0, x1, 6, 16, hatch(context, colour, true));
  } else {
    box(context, x0, x1, 13, 2, colours.gone);
  }
  const left = Math.max(x0, 0) + 3;
  const shown = fitted(context, what, x1 - left - 8);
  if (!shown) return;
  box(context, left, left + context.measureText(shown).width + 6, 6, 16, colours.lane);
  context.fillStyle = what === "paused" ? colours.text : colours.bad;
  context.fillText(shown, left + 3, 14);
}

/** Cut off from the controller or most brokers: pale and hatched; fewer links: an outline. */
function paintCut({ context, x }, [from, to, what]) {
  const x0 = x(from), x1 = x(to);
  const off = what.startsWith("cut off");
  if (off) {
    context.globalAlpha = 0.6;
    box(context, x0, x1, 6, 16, colours.lane);
    context.globalAlpha = 0.5;
    box(context, x0, x1, 6, 16, hatch(context, colours.bad, false));
    context.globalAlpha = 1;
  }
  context.strokeStyle = off ? colours.bad : colours.back;
  context.lineWidth = off ? 1.5 : 1;
  context.setLineDash([5, 3]);
  context.strokeRect(x0 + 1, 7, Math.max(x1 - x0 - 2, 1), 14);
  context.setLineDash([]);
  if (!off) return inBar(context, what, x0, x1, 14, "#fff");
  const left = Math.max(x0, 0) + 4, shown = fitted(context, what, x1 - left - 8);
  if (!shown) return undefined;
  box(context, left, left + context.measureText(shown).width + 6, 7, 14, colours.lane);
  return inBar(context, what, left - 2, x1, 14, colours.bad);
}

// ------------------------------------------------------------------------------- partitions

function partitionLane(partition, place) {
  const strips = partition.replicas.length * 5;
  const found = notesOf(`p${place}`).filter(
    (note) => !QUIET.has(note.kind) && !note.kind.startsWith("isr_"),
  );
  const hasLog = partition.series.some((series) => series.end.at(-1) > 0 || series.t.length > 1);
  return {
    key: `p${place}`, title: partition.name, partition,
    sub: partition.windows.length ? `unavailable ${lasting(unavailableFor(partition))}` : "",
    height: 26 + strips + (hasLog ? 34 : 0), tall: hasLog ? 34 + strips + 170 : 0,
    paint(surface) {
      paintWindows(surface, partition);
      paintLeaders(surface, partition);
      paintMembers(surface, partition);
      if (hasLog) paintLogs(surface, partition, 25 + strips, surface.height - 4);
      paintNotes(surface, found, 13, 4.5);
      for (const anomaly of partition.anomalies) {
        const at = surface.x(anomaly.at);
        surface.context.fillStyle = colours.bad;
        surface.context.font = `700 15px ${FONT.slice(5)}`;
        surface.context.fillText("✖", at - 6, surface.height - 9);
        surface.context.font = FONT;
      }
    },
    describe(at, reach) {
      const lines = partitionLines(partition, at);
      for (const anomaly of partition.anomalies) {
        if (Math.abs(anomaly.at - at) > reach) continue;
        lines.push({ mood: "bad", text: `${anomaly.name}: ${anomaly.text}` });
        lines.push(...causeLines(anomaly.chain));
      }
      for (const [problem, , from, , to, text] of partition.marks) {
        if (at < from - reach || at > to + reach) continue;
        lines.push({ mood: problem === "missed" ? "bad" : "warn", text });
      }
      return lines;
    },
  };
}

/** How long writes were unavailable, or else reads. */
function unavailableFor(partition) {
  const sum = (kind) => partition.windows
    .filter((found) => found.kind === kind)
    .reduce((total, found) => total + found.to - found.from, 0);
  return sum("writes") || sum("reads");
}

function paintWindows({ context, height, x }, partition) {
  for (const found of partition.windows) {
    const writes = found.kind === "writes", colour = writes ? colours.bad : colours.warn;
    const x0 = x(found.from), x1 = Math.max(x(found.to), x0 + 1.5);
    context.globalAlpha = 0.22;
    box(context, x0, x1, 0, height, hatch(context, colour, writes));
    context.globalAlpha = 0.06;
    box(context, x0, x1, 0, height, colour);
    context.globalAlpha = 1;
    box(context, x0, x1, writes ? 0 : height - 3, 3, colour);
  }
}

function paintLeaders({ context, width, x }, partition) {
  for (const [from, to, { leader, epoch }] of partition.led) {
    const x0 = x(from), x1 = x(to);
    if (x1 < 0 || x0 > width || leader === DELETED) continue;
    if (leader < 0) {
      context.strokeStyle = colours.bad;
      context.lineWidth = 1;
      context.strokeRect(x0 + 0.5, 6.5, Math.max(x1 - x0 - 1, 1), 14);
      inBar(context, "no leader", x0, x1, 13.5, colours.bad);
      continue;
    }
    box(context, x0, x1, 6, 15, brokerColour(leader));
    const words = (colour) => inBar(
      context, `leader ${leader}, epoch ${epoch}`, x0, Math.min(x1, width), 13.5, colour,
    );
    words("#fff");
    fadeWhereDown(context, leader, from, to, x, () => words(colours.text));
  }
}

/** Fades a leader whose process is not running, which the controller may not know yet.  `again`
 * writes what stands there, in a colour that can be read on the pale one. */
function fadeWhereDown(context, leader, from, to, x, again) {
  for (const [begin, end, what] of brokersById.get(leader)?.states ?? []) {
    if (what === "up" || end <= from || begin >= to) continue;
    const x0 = x(Math.max(from, begin)), x1 = x(Math.min(to, end));
    context.globalAlpha = 0.75;
    box(context, x0, x1, 6, 15, colours.lane);
    context.globalAlpha = 1;
    context.save();
    context.beginPath();
    context.rect(x0, 6, x1 - x0, 15);
    context.clip();
    again();
    context.restore();
  }
}

/** A strip for each replica: full in the ISR, hollow in the ELR, a hairline outside both. */
function paintMembers({ context, width, x }, partition) {
  partition.replicas.forEach((broker, place) => {
    const y = 24 + place * 5, colour = brokerColour(broker);
    for (const [from, to, standing] of partition.members.get(broker)) {
      const x0 = x(from), x1 = x(to);
      if (x1 < 0 || x0 > width) continue;
      if (standing === "isr") box(context, x0, x1, y, 3.5, colour);
      else if (standing === "elr") {
        box(context, x0, x1, y, 1, colour);
        box(context, x0, x1, y + 2.5, 1, colour);
      } else if (standing === "out") box(context, x0, x1, y + 1.5, 0.5, colours.gone);
    }
  });
}

/** Log ends as lines, high watermarks dashed, both scaled to the view. */
function paintLogs(surface, partition, top, bottom) {
  const { context, width, x } = surface;
  const from = view.from, to = view.to;
  let low = Infinity, high = -Infinity;
  for (const series of partition.series) {
    const first = Math.max(lastUntil(series.t, from), 0), last = lastUntil(series.t, to);
    for (let place = first; place <= last; place++) {
      low = Math.min(low, series.hw[place], series.end[place]);
      high = Math.max(high, series.end[place]);
    }
  }
  if (high < low) return;
  const count = partition.series.length, rail = 1.4;
  const scale = (bottom - top - rail * count) / Math.max(high - low, 1);
  context.save();
  clipToSpans(surface, partition.alive);
  partition.series.forEach((series, place) => {
    const y = (offset) => bottom - rail * place - (offset - low) * scale;
    context.strokeStyle = brokerColour(series.broker);
    const state = (span) => span[2] === "up";
    const ups = (brokersById.get(series.broker)?.states ?? []).filter(state);
    context.save();
    clipToSpans(surface, ups);
    context.lineWidth = 1.6;
    stepLine(context, series.t, series.end, x, y, width);
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    stepLine(context, series.t, series.hw, x, y, width);
    context.restore();
    context.globalAlpha = 0.3;
    stepLine(context, series.t, series.end, x, y, width);
    context.globalAlpha = 1;
  });
  context.restore();
  paintMarks(surface, partition, (offset) => bottom - (offset - low) * scale);
  if (bottom - top > 90) {
    context.fillStyle = colours.dim;
    context.fillText(high.toLocaleString("en"), 4, top + 6);
    context.fillText(low.toLocaleString("en"), 4, bottom - 12);
  }
}

/** What the application missed, in red, or did twice or out of order: where it was appended. */
function paintMarks({ context, x }, partition, y) {
  for (const [problem, first, from, last, to] of partition.marks) {
    context.strokeStyle = context.fillStyle = problem === "missed" ? colours.bad : colours.warn;
    context.lineWidth = 4;
    context.beginPath();
    context.moveTo(x(from), y(first));
    context.lineTo(x(to), y(last + 1));
    context.stroke();
    context.beginPath();
    context.arc(x(from), y(first), 4, 0, Math.PI * 2);
    context.fill();
  }
}

/** Clip drawing to these spans (from, to) until `restore`. */
function clipToSpans({ context, height, x }, spans) {
  context.beginPath();
  for (const [from, to] of spans) {
    context.rect(x(from) - 1, 0, Math.max(x(to) - x(from), 1) + 2, height);
  }
  context.clip();
}

/** A step line.  Of the values on one pixel only the first, the lowest and the last are drawn. */
function stepLine(context, times, values, x, y, width) {
  const first = Math.max(lastUntil(times, view.from), 0);
  let column = -1e9, before = values[first];
  context.beginPath();
  context.moveTo(Math.max(x(times[first]), -5), y(before));
  let place = first + 1;
  for (; place < times.length; place++) {
    const at = x(times[place]);
    if (at > width + 5) break;
    const value = values[place], next = times[place + 1];
    const crowded = at - column < 0.7 && next !== undefined && x(next) - column < 0.7;
    if (crowded && value >= before) continue;
    context.lineTo(at, y(before));
    context.lineTo(at, y(value));
    column = at;
    before = value;
  }
  context.lineTo(Math.min(x(run.end), width + 5), y(before));
  context.stroke();
}
