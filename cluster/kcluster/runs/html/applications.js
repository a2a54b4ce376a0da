// The lanes of the application, by topic: records that it reported as processed, commits of its groups.

const PROBLEMS = { missed: "missed", repeated: "processed again", out_of_order: "out of order" };

/** `15 missed, 2 processed again`. */
function problemCounts(counts) {
  return Object.entries(PROBLEMS).filter(([name]) => counts[name])
    .map(([name, words]) => `${counts[name].toLocaleString("en")} ${words}`).join(", ");
}

/** The worse of the cluster's verdict and the application's ledger: its class and its words. */
function badge() {
  const wrong = problemCounts(run.application);
  if (!wrong) return element("span", `badge ${run.outcome}`, run.outcome);
  const cluster = run.outcome === "valid" ? "" : `${run.outcome}; `;
  return element("span", "badge invalid", `${cluster}the application: ${wrong}`);
}

function applicationLane(application) {
  const done = application.processed.reduce((sum, [, count]) => sum + count, 0);
  const wrong = problemCounts(application.counts);
  return {
    key: `a:${application.topic}`, title: `application, ${application.topic}`,
    sub: `${many(done, "record")} processed${wrong ? `, ${wrong}` : ""}`, height: 48,
    paint(surface) {
      const base = surface.height - 14, bars = new Map(), cell = barTime();
      for (const [at, count] of application.processed) {
        if (at < view.from - cell || at > view.to) continue;
        const index = Math.floor(at / cell);
        bars.set(index, (bars.get(index) ?? 0) + count);
      }
      const most = [...bars.values()].reduce((top, count) => Math.max(top, count), 4);
      surface.context.fillStyle = colours.read;
      for (const [index, count] of bars) {
        const height = Math.sqrt(count / most) * (base - 4);
        surface.context.fillRect(surface.x(index * cell), base - height, BAR_PX - 0.6, height);
      }
      paintCommits(surface, application, base);
    },
    describe: (at, reach) => applicationLines(application, at, reach),
  };
}

/** Below the bars: a tick per commit; one that was refused is red. */
function paintCommits({ context, width, x }, application, base) {
  for (const [at, , , error] of application.commits) {
    const middle = x(at);
    if (middle < -2 || middle > width + 2) continue;
    context.fillStyle = error ? colours.bad : colours.good;
    context.fillRect(middle - 1, base + 3, 2, 8);
  }
}

function applicationLines(application, at, reach) {
  const cell = Math.max(barTime(), 1), from = Math.floor(at / cell) * cell;
  const done = application.processed
    .filter(([when]) => when >= from && when < from + cell)
    .reduce((sum, [, count]) => sum + count, 0);
  const lines = done ? [`${many(done, "record")} processed`] : [];
  for (const [when, group, offsets, error] of application.commits) {
    if (Math.abs(when - at) > reach) continue;
    const text = `group ${group} committed ${offsets}`;
    lines.push(error ? { mood: "bad", text: `${text}: refused with ${error}` } : text);
  }
  return lines;
}
