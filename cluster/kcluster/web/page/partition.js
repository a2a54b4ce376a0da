// The view of a partition: each replica's log as cells by epoch, with high watermark and rings.
//
// The newest records are cells, one each; what is before them is drawn as runs, one per epoch.

const CELL_PX = 24;
const MAX_CELLS = 40;
const RUNS_SHARE = 0.24;
/** Room at the right for the bar of the high watermark. */
const MARK_PX = 6;
const LANE_PX = 64;
const LANE_PX_OF_MANY = 46;

/** What a partition looks like at a time, as values: everything that is drawn. */
function partitionAt(model, partition, at) {
  const registration = model.registrationAt(partition, at);
  if (!registration || registration.deleted) return { registration, replicas: [] };
  const replicas = registration.replicas.map((broker) => {
    const point = partition.series.get(broker)?.find(at) ?? { end: 0, mark: 0, stable: -1 };
    return {
      broker,
      ...point,
      process: model.processAt(broker, at),
      fenced: model.isFenced(broker, at),
      standing: standingOf(registration, broker),
      runs: model.runsAt(partition, broker, at),
      start: model.startAt(partition, broker, at),
    };
  });
  const leader = replicas.find((each) => each.broker === registration.leader) ?? null;
  for (const each of replicas) each.diverges = leader ? divergence(each, leader) : each.end;
  return { registration, replicas, leader };
}

/** The epoch of an offset in runs; null if there is no record. */
function epochAt(runs, offset) {
  let found = null;
  for (const [epoch, start] of runs) {
    if (start > offset) break;
    found = epoch;
  }
  return found;
}

/** The first offset from which on a replica's log is not its leader's; its end if none. */
function divergence(replica, leader) {
  const end = Math.min(replica.end, leader.end);
  const bounds = [...replica.runs, ...leader.runs].map(([, start]) => start).filter((o) => o < end);
  for (const offset of bounds.sort((a, b) => a - b)) {
    if (epochAt(replica.runs, offset) !== epochAt(leader.runs, offset)) return offset;
  }
  return end < replica.end ? end : replica.end;
}

/** From offsets to pixels: cells from `first` on at the right, runs before them at the left. */
function scaleOf(replicas, laneWidth) {
  const width = laneWidth - MARK_PX;
  const start = Math.min(...replicas.map((each) => each.start));
  const end = Math.max(...replicas.map((each) => each.end), start + 1);
  const roomy = Math.min(MAX_CELLS, Math.max(8, Math.floor(width / cellWidth())));
  if (end - start <= roomy) {
    const cell = width / roomy;
    return { start, first: start, end, cell, runs: 0, x: (offset) => (offset - start) * cell };
  }
  const runs = width * RUNS_SHARE;
  const count = Math.max(6, Math.floor(roomy * (1 - RUNS_SHARE)));
  const cell = (width - runs) / count,
    first = end - count;
  return {
    start,
    first,
    end,
    cell,
    runs,
    x: (offset) =>
      offset >= first
        ? runs + (offset - first) * cell
        : ((offset - start) / (first - start)) * runs,
  };
}

const cellWidth = () => (document.body.classList.contains("projector") ? CELL_PX * 1.8 : CELL_PX);

/** The tree of the view.  `page`: model, at, began, selected, act (callbacks). */
function partitionView(page, partition, width) {
  const { model, at } = page;
  const shown = partitionAt(model, partition, at);
  if (!shown.registration)
    return [h("p", { class: "dim" }, `${partition.name} does not exist yet.`)];
  if (shown.registration.deleted)
    return [h("p", { class: "dim" }, `${partition.name} is deleted.`)];
  const { registration } = shown;
  const scale = scaleOf(shown.replicas, Math.max(laneWidth(width), 160));
  const epochs = [...new Set(shown.replicas.flatMap((each) => each.runs.map(([epoch]) => epoch)))];
  return [
    h(
      "h2",
      null,
      partition.name,
      " ",
      h(
        "small",
        null,
        registration.leader < 0
          ? h("b", { class: "bad-text" }, "no leader")
          : `leader ${registration.leader}, epoch ${registration.epoch}`,
        ` · ISR {${registration.isr.join(", ")}}`,
        registration.elr.length ? ` · ELR {${registration.elr.join(", ")}}` : "",
        " ",
        page.readOnly
          ? null
          : button("Move leader…", (event) => page.partitionMenu(event, partition), {
              class: "small",
              "aria-haspopup": "menu",
            }),
      ),
    ),
    clientsLine(page, partition, "producers"),
    h(
      "div",
      { class: "replicas" },
      axisTree(scale, width),
      shown.replicas.map((each) => replicaTree(page, partition, shown, each, scale, width)),
    ),
    clientsLine(page, partition, "consumers"),
    legendTree(epochs.slice(-6)),
  ];
}

const laneWidth = (width) => (width < 560 ? width - 4 : width - labelWidth() - 12);
const labelWidth = () => (document.body.classList.contains("projector") ? 300 : 190);

function axisTree(scale, width) {
  const every = scale.cell >= 22 ? 1 : scale.cell >= 13 ? 2 : 5;
  const ticks = [];
  for (
    let offset = scale.first;
    offset < scale.first + Math.round((laneWidth(width) - MARK_PX - scale.runs) / scale.cell);
    offset++
  ) {
    const step = number(scale.end).length > 4 ? 5 * every : every;
    if (offset % step) continue;
    ticks.push(
      h(
        "text",
        { key: offset, x: scale.x(offset) + scale.cell / 2, y: 13, "text-anchor": "middle" },
        String(offset),
      ),
    );
  }
  return h(
    "div",
    { key: "axis", class: "replica axis" },
    h("span", { class: "label dim" }, "offset"),
    h(
      "svg",
      { width: laneWidth(width), height: 18, "aria-hidden": "true" },
      scale.runs ? h("text", { key: "before", x: 2, y: 13 }, `${number(scale.start)} …`) : null,
      ticks,
    ),
  );
}

/** One replica: who it is, and its log. */
function replicaTree(page, partition, shown, replica, scale, width) {
  const { broker, standing, process } = replica;
  const words = replicaWords(replica, shown.leader),
    { leader } = shown;
  const spoken = [...words, ...offsetWords(replica, leader, true)].join(", ");
  return h(
    "div",
    { key: broker, class: `replica ${process.state} ${standing}` },
    h(
      "button",
      {
        type: "button",
        class: "label",
        "data-broker": broker,
        disabled: page.readOnly === true,
        "aria-haspopup": "menu",
        "aria-label": `Broker ${broker}: ${spoken}. Actions`,
        onclick: (event) => page.brokerMenu(event, broker),
      },
      h("span", { class: `ring ${standing}`, "data-flight": `b${broker}` }, String(broker)),
      standing === "leader" ? crown() : null,
      h(
        "span",
        { class: "words" },
        h("b", null, words[0]),
        words.slice(1).map((each) => `, ${each}`),
        h("br"),
        offsetWords(replica, leader).join(" · "),
      ),
    ),
    logTree(page, partition, shown, replica, scale, width),
  );
}

function replicaWords(replica, leader) {
  const words = [];
  if (replica.process.state === "up") {
    words.push(STANDING_WORDS[replica.standing]);
    if (replica.fenced) words.push("fenced");
  } else words.push(processWords(replica.process), STANDING_WORDS[replica.standing]);
  const more = leader && replica !== leader ? replica.end - leader.end : 0;
  const gone = leader && replica !== leader ? replica.end - replica.diverges : 0;
  if (gone > 0) words.push(`${number(gone)} not in the leader's log`);
  else if (more < 0) words.push(`${number(-more)} behind`);
  return words;
}

/** Log end and high watermark, short; spelled out for those who hear it. */
function offsetWords(replica, leader, isLong = false) {
  const [mark, stable] = isLong ? ["high watermark", "last stable offset"] : ["HW", "LSO"];
  const words = [`end ${number(replica.end)}`];
  if (replica.mark >= 0) words.push(`${mark} ${number(replica.mark)}`);
  if (isHeldBack(replica, leader)) words.push(`${stable} ${number(replica.stable)}`);
  return words;
}

/** Whether an open transaction holds back the leader's last stable offset. */
const isHeldBack = (replica, leader) =>
  replica === leader && replica.stable >= 0 && replica.stable < replica.mark;

function logTree(page, partition, shown, replica, scale, width) {
  const tall = shown.replicas.length > 4 ? LANE_PX_OF_MANY : LANE_PX,
    y = 9,
    height = tall - 20;
  const cells = [];
  for (let offset = Math.max(scale.first, replica.start); offset < replica.end; offset++) {
    const epoch = epochAt(replica.runs, offset);
    const gone = shown.leader && offset >= replica.diverges && replica !== shown.leader;
    const isChosen =
      page.selected?.partition === partition &&
      page.selected.offset === offset &&
      (page.selected.epoch === epoch || page.selected.broker === replica.broker);
    const pick = () => page.select({ partition, offset, epoch, broker: replica.broker });
    cells.push(
      h("rect", {
        key: offset,
        x: scale.x(offset) + 1,
        y,
        width: Math.max(scale.cell - 2, 2),
        height,
        rx: 2,
        fill: epochFill(epoch),
        role: "button",
        "data-offset": offset,
        tabindex: offset === replica.end - 1 || isChosen ? 0 : -1,
        class: `cell${offset >= replica.mark ? " open" : ""}${gone ? " gone" : ""}${isChosen ? " chosen" : ""}`,
        "aria-label":
          `Offset ${offset}, epoch ${epoch ?? "unknown"}` +
          `${offset < replica.mark ? ", committed" : ", not committed"}${gone ? ", not in the leader's log" : ""}`,
        onclick: pick,
        onkeydown: cellKeys(pick),
      }),
    );
  }
  const markX = scale.x(replica.mark);
  const shownStable = isHeldBack(replica, shown.leader);
  return h(
    "svg",
    {
      width: laneWidth(width),
      height: tall,
      class: "log",
      role: "group",
      "aria-label": `Log of broker ${replica.broker}`,
    },
    runTrees(replica, scale, y, height),
    cells,
    shownStable
      ? h("path", {
          key: "stable",
          class: "stable",
          d: `M${scale.x(replica.stable)} 2V${tall - 4}`,
        })
      : null,
    replica.mark >= 0
      ? h("path", { key: "mark", class: "mark", d: `M${markX} 1V${tall - 2}m-4 0h8` })
      : null,
  );
}

/** Enter chooses a record; arrows go to its neighbours. */
const cellKeys = (pick) => (event) => {
  const to = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
  if (to) {
    const next = event.currentTarget[to];
    if (next?.matches(".cell")) next.focus();
    event.preventDefault();
    event.stopPropagation();
  } else onEnter(pick)(event);
};

/** What is before the cells: a bar per epoch, with its number if there is room. */
function runTrees(replica, scale, y, height) {
  if (!scale.runs) return [];
  const bars = [];
  replica.runs.forEach(([epoch, start], index) => {
    const until = Math.min(replica.runs[index + 1]?.[1] ?? replica.end, replica.end, scale.first);
    const from = Math.max(start, replica.start);
    if (until <= from) return;
    const x0 = scale.x(from),
      x1 = until >= scale.first ? scale.runs : scale.x(until);
    bars.push(
      h(
        "rect",
        {
          key: `run${index}`,
          x: x0,
          y: y + height / 5,
          width: Math.max(x1 - x0 - 1, 1),
          height: (height * 3) / 5,
          fill: epochFill(epoch),
          class: "run",
        },
        h("title", null, `offsets ${from} to ${until - 1}, epoch ${epoch}`),
      ),
    );
  });
  return bars;
}

/** Who produces to the partition, or reads it, in the last seconds. */
function clientsLine(page, partition, side) {
  const { model, at } = page;
  const api = side === "producers" ? "Produce" : "Fetch";
  const found = [];
  for (const client of model.clients.values()) {
    const exchange = recentExchange(client, api, partition, at);
    if (!exchange || at - exchange.at > 30_000) continue;
    const position =
      side === "consumers" && exchange.last >= 0 ? ` at ${number(exchange.last + 1)}` : "";
    const error = exchange.answered_ms >= 0 && exchange.answered_ms <= at ? exchange.error : "";
    found.push(
      h(
        "button",
        {
          key: client.name,
          type: "button",
          class: `client${error ? " refused" : ""}`,
          "data-flight": `c${client.name}`,
          onclick: () => page.showClient(client.name),
        },
        h("b", null, client.name),
        position,
        error ? h("span", { class: "bad-text" }, ` ${error}`) : null,
      ),
    );
  }
  return h(
    "div",
    { key: side, class: "clients" },
    h("span", { class: "dim" }, side === "producers" ? "Producers" : "Consumers"),
    found.length ? found.slice(0, 12) : h("span", { class: "dim" }, "none seen lately"),
  );
}

/** The newest exchange of a client about a partition, among its last hundred. */
function recentExchange(client, api, partition, at) {
  const rows = client.exchanges;
  for (let i = lastAt(rows, at), tries = 0; i >= 0 && tries < 100; i--, tries++) {
    const row = rows[i];
    if (row.api === api && row.topic === partition.topic && row.partition === partition.number)
      return row;
  }
  return null;
}

function legendTree(epochs) {
  const swatch = (props, text, key) =>
    h(
      "span",
      { key, class: "entry" },
      h("svg", { width: 24, height: 16, "aria-hidden": "true" }, props),
      text,
    );
  return h(
    "p",
    { class: "legend" },
    epochs.map((epoch) =>
      swatch(
        h("rect", { width: 22, height: 14, y: 1, fill: epochFill(epoch) }),
        `epoch ${epoch}`,
        epoch,
      ),
    ),
    swatch(h("path", { class: "mark", d: "M12 0V16m-4 0h8" }), "high watermark", "mark"),
    swatch(h("path", { class: "stable", d: "M12 0V16" }), "last stable offset", "stable"),
    swatch(
      h("rect", {
        width: 22,
        height: 14,
        y: 1,
        class: "cell open",
        fill: epochFill(epochs[0] ?? 0),
      }),
      "not committed",
      "open",
    ),
    swatch(
      h("rect", {
        width: 21,
        height: 13,
        x: 1,
        y: 1,
        class: "cell gone",
        fill: epochFill(epochs[0] ?? 0),
      }),
      "not in the leader's log",
      "gone",
    ),
    h("span", { class: "entry" }, h("span", { class: "ring isr tiny" }), "in sync"),
    h("span", { class: "entry" }, h("span", { class: "ring elr tiny" }), "eligible (ELR)"),
  );
}

// -------------------------------------------------------------------------------- one record

/** What is known about a record: who sent it, who has it, who was answered, who read it. */
function recordTree(page, chosen) {
  const { model, at, began } = page;
  const { partition, offset, epoch } = chosen;
  const { registration, replicas } = partitionAt(model, partition, at);
  const batch = epoch === null ? null : model.batchOf(partition, offset, epoch);
  const answers = [],
    readers = new Map();
  for (const client of model.clients.values()) {
    for (const row of client.exchanges) {
      if (row.at > at) break;
      if (row.topic !== partition.topic || row.partition !== partition.number) continue;
      if (row.first < 0 || row.first > offset || row.last < offset) continue;
      if (row.answered_ms < 0 || row.answered_ms > at) continue;
      if (row.api === "Produce" && (!batch || row.broker === batch.broker))
        answers.push([client.name, row]);
      if (row.api === "Fetch" && !readers.has(client.name)) readers.set(client.name, row);
    }
  }
  const lines = [];
  const line = (term, ...text) =>
    lines.push(h("dt", { key: term }, term), h("dd", { key: `${term}.` }, text));
  if (batch) {
    const sender = answers.find(([, row]) => !row.error)?.[0] ?? batch.client;
    line("Sent by", sender || "unknown", `, at ${clock(batch.at, began)}`);
    line("Batch", `offsets ${batch.base} to ${batch.last}, appended by broker ${batch.broker}`);
    line("ISR then", `{${batch.isr.join(", ")}}`);
  }
  line("Epoch", epoch === null ? "unknown" : `${epoch}`);
  const has = [],
    lacks = [],
    other = [];
  for (const each of replicas) {
    const own = offset < each.end && offset >= each.start ? epochAt(each.runs, offset) : null;
    (offset >= each.end || offset < each.start ? lacks : own === epoch ? has : other).push(
      each.broker,
    );
  }
  line("Has it", has.length ? brokersText(has) : "nobody");
  if (lacks.length) line("Lacks it", brokersText(lacks));
  if (other.length) line("Has another record there", brokersText(other));
  const leader = replicas.find((each) => each.broker === registration?.leader);
  const isCommitted = leader && has.includes(leader.broker) && offset < leader.mark;
  line("Committed", isCommitted ? "yes: below the high watermark" : "no");
  line(
    "Acked",
    answers.length
      ? answers
          .slice(0, 3)
          .map(
            ([name, row]) =>
              `to ${name} at ${clock(row.answered_ms, began)}${row.error ? `: ${row.error}` : ""} `,
          )
      : "no answer seen",
  );
  line(
    "Read by",
    readers.size
      ? [...readers]
          .slice(0, 6)
          .map(([name, row]) => `${name} at ${clock(row.answered_ms, began)} `)
      : "nobody seen",
  );
  return h(
    "section",
    { key: "record", class: "card", "aria-label": "Record" },
    button("×", () => page.select(null), { class: "close", "aria-label": "Close the record" }),
    h("h2", null, `Record ${number(offset)} of ${partition.name}`),
    h("dl", null, lines),
  );
}

const brokersText = (ids) => `broker${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
