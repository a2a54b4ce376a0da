// Kafka clusters that tests break.
//
//   const cluster = await start(t, {brokers: 3, profile: "fast", topics: {orders: {}}});
//   await cluster.act({kill: "leader(orders-0)"});
//
// The process that runs them is the one at $KCLUSTER_URL, with $KCLUSTER_TOKEN, or `kcluster serve`,
// started once per process and ended with it. Every cluster has a lease, so that nothing is left of it
// if the test dies. A refused request throws an Error with the server's reason.

import { AssertionError } from "node:assert";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const LEASE_S = 30;

// Starts a cluster with a topology as in a topology file: an object, or YAML. `t`, a context of
// node:test, stops it at the end of the test; without one, call close().
export async function start(t, topology = { brokers: 3 }) {
  const server = await shared();
  const created = await call(server, "POST", "/v1/clusters", { topology, lease: `${LEASE_S}s` });
  const cluster = new Cluster(server, created);
  t?.after(() => cluster.close());
  return cluster;
}

export class Cluster {
  #server;
  #path;
  #renewal;

  constructor(server, created) {
    this.#server = server;
    this.#path = `/v1/clusters/${created.id}`;
    this.bootstrap = created.bootstrap;
    this.brokers = created.bootstrap.split(",");
    // Each request renews the lease.
    this.#renewal = setInterval(() => this.status().catch(() => {}), (LEASE_S / 3) * 1000);
    this.#renewal.unref();
  }

  // Brokers, partitions and links, as they are now.
  status() {
    return this.#call("GET", "");
  }

  // The options with which kafkajs comes in as a user; without one as the first user, where clients
  // must log in: new Kafka(await cluster.clientConfig("alice")). `mechanism`: of SASL, such as "PLAIN";
  // without one the strongest.
  async clientConfig(user = "", mechanism = "") {
    const query = new URLSearchParams({ library: "librdkafka", user, mechanism });
    const { settings } = await this.#call("GET", `/client-config?${query}`);
    const options = { brokers: settings["bootstrap.servers"].split(",") };
    const [ca, cert, key] = ["ca", "certificate", "key"].map(
      (file) => settings[`ssl.${file}.location`],
    );
    if (ca) options.ssl = { ca: [readFileSync(ca)] };
    if (cert) Object.assign(options.ssl, { cert: readFileSync(cert), key: readFileSync(key) });
    if (settings["sasl.mechanism"]) {
      options.sasl = {
        mechanism: settings["sasl.mechanism"].toLowerCase(),
        username: settings["sasl.username"],
        password: settings["sasl.password"],
      };
    }
    return options;
  }

  // Performs an action of scenario files, such as {kill: "leader(orders-0)"}, and waits until the
  // cluster has noticed. Returns {action, brokers, events}; `action` is the number for undo().
  act(action) {
    return this.#call("POST", "/actions", action);
  }

  // Undoes an action: starts what it killed, heals what it cut.
  undo(action) {
    return this.#call("DELETE", `/actions/${action.action ?? action}`);
  }

  // Undoes every fault, and waits until all replicas are in sync.
  heal() {
    return this.#call("POST", "/heal");
  }

  // Waits until a condition of scenario files holds, such as "isr(orders-0) = 3".
  until(condition, within = "10s") {
    return this.#call("POST", "/wait", { until: condition, within });
  }

  // Whether the cluster has kept its promises so far, or since a moment: a time back such as "30s", or
  // what mark() returned. {outcome, reason, anomalies, ...}
  verdict({ since } = {}) {
    return this.#call("GET", since ? `/verdict?since=${encodeURIComponent(since)}` : "/verdict");
  }

  // This moment, for verdict({since}) and assertValid({since}), if tests share a cluster.
  async mark() {
    return `@${(await this.status()).at_ms}`;
  }

  // What has happened, oldest first.
  async events() {
    return (await this.#call("GET", "/events")).events;
  }

  // Throws unless the verdict is valid; the message has the events and their causes.
  async assertValid({ since } = {}) {
    const verdict = await this.verdict({ since });
    if (verdict.outcome === "valid") return;
    const lines = [`${verdict.outcome}: ${verdict.reason}`];
    for (const finding of [...verdict.anomalies, ...verdict.violations]) {
      lines.push(`  ${finding.name}: ${finding.text}`);
      for (const link of finding.chain) lines.push(`    ${link.text}`);
    }
    lines.push(await this.#story());
    throw new AssertionError({
      message: lines.join("\n"),
      actual: verdict.outcome,
      expected: "valid",
    });
  }

  // Reports that the application has processed a record, for assertProcessedOnce().
  processed(topic, partition, offset) {
    const offsets = [[Number(partition), Number(offset)]];
    return this.#call("POST", "/processed", { topic, offsets });
  }

  // Throws unless each record of a topic was reported as processed, once and in order.
  async assertProcessedOnce(topic) {
    const judged = await this.#call("GET", `/processed?topic=${encodeURIComponent(topic)}`);
    if (judged.valid) return;
    const lines = judged.problems.map((problem) => problem.text);
    throw new AssertionError({ message: [...lines, await this.#story()].join("\n") });
  }

  async close() {
    clearInterval(this.#renewal);
    await this.#call("DELETE", "");
  }

  // The events: number, time since the first one, and the number of the cause.
  async #story() {
    const lines = ["what happened:"];
    const numbers = new Map();
    const events = await this.events();
    for (const event of events) {
      numbers.set(String(event.id), event.sequence);
      const cause = event.cause && numbers.get(String(event.cause));
      const why = cause ? ` (because of ${cause})` : "";
      const number = String(event.sequence).padStart(4);
      const at = `+${event.at_ms - events[0].at_ms}`.padStart(8);
      lines.push(`${number} ${at} ms  ${event.sentence}${why}`);
    }
    return lines.join("\n");
  }

  #call(method, path, body) {
    return call(this.#server, method, this.#path + path, body);
  }
}

let started;

function shared() {
  const { KCLUSTER_URL: url, KCLUSTER_TOKEN: token } = process.env;
  started ??= url ? Promise.resolve({ url, token }) : startServer();
  return started;
}

function startServer() {
  const program = (process.env.KCLUSTER_COMMAND ?? "kcluster").split(" ");
  const command = [...program, "serve", "--port", "0", "--json", "--exit-with-stdin"];
  // The pipe to its standard input ends with this process, and it ends with the pipe.
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.on("error", () =>
      reject(new Error(`${command[0]} does not start; $KCLUSTER_COMMAND names it`)),
    );
    child.on("exit", () => reject(new Error(`${command.join(" ")} ended before it was ready`)));
    createInterface({ input: child.stdout }).once("line", (line) => {
      for (const one of [child, child.stdin, child.stdout]) one.unref();
      resolve(JSON.parse(line));
    });
  });
}

async function call({ url, token }, method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw new Error([answer.detail, ...(answer.state ?? [])].join("\n  "));
}
