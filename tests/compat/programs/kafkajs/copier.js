// Copier copies a topic to another with kafkajs, in transactions that hold the group's offsets.
//
// Usage: node copier.js BOOTSTRAP SOURCE SINK GROUP TRANSACTIONAL_ID SESSION_MS
//
// It prints how many records it has copied with each commit, and ends on SIGTERM.  How it logs in is
// in the environment: KAFKA_CA and KAFKA_CERTIFICATE (files), KAFKA_MECHANISM, KAFKA_USER,
// KAFKA_PASSWORD (for OAUTHBEARER a token).
//
// The work is done by a second process, which ends after an error and is started again: then its first
// transaction ends what the last producer left open, before the group's offsets are read.  A consumer
// of kafkajs 2.2.4 that stops while it joins again may spin for ever, so a worker without progress is
// killed.

const { spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");

const [bootstrap, source, sink, groupId, transactionalId, session] = process.argv.slice(2);
const sessionMs = Number(session);
const PROGRESS_MS = 4 * sessionMs;

function supervise() {
  const environment = { ...process.env, COPIER_WORKER: "yes" };
  const worker = spawn(process.execPath, process.argv.slice(1), {
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = () => worker.kill("SIGKILL");
  let timer = setTimeout(kill, PROGRESS_MS);
  worker.stdout.on("data", (lines) => {
    process.stdout.write(lines);
    clearTimeout(timer);
    timer = setTimeout(kill, PROGRESS_MS);
  });
  process.once("SIGTERM", kill);
  worker.on("exit", () => {
    clearTimeout(timer);
    if (process.listenerCount("SIGTERM") === 0) process.exit(0);
    process.off("SIGTERM", kill);
    console.log("starts over");
    supervise();
  });
}

async function work() {
  const { Kafka, logLevel } = require("kafkajs");
  const kafka = new Kafka({
    brokers: bootstrap.split(","),
    clientId: "copier",
    ...login(process.env),
    logLevel: logLevel[process.env.COPIER_LOG || "NOTHING"],
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 20 },
  });
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 });
  const consumer = kafka.consumer({
    groupId,
    readUncommitted: false,
    sessionTimeout: sessionMs,
    heartbeatInterval: sessionMs / 10,
    maxBytesPerPartition: 512,
    maxWaitTimeInMs: 100,
    retry: { retries: 3 },
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => fail(payload.error));
  await producer.connect();
  await (await producer.transaction()).abort();
  await consumer.connect();
  await consumer.subscribe({ topics: [source], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset }) => {
      await copy(producer, batch).catch(fail);
      resolveOffset(batch.lastOffset());
      console.log("copied", batch.messages.length);
    },
  });
}

function login({ KAFKA_CA, KAFKA_CERTIFICATE, KAFKA_MECHANISM, KAFKA_USER, KAFKA_PASSWORD }) {
  const options = {};
  if (KAFKA_CA) options.ssl = { ca: [readFileSync(KAFKA_CA)] };
  if (KAFKA_CERTIFICATE) {
    const own = readFileSync(KAFKA_CERTIFICATE);
    Object.assign(options.ssl, { cert: own, key: own });
  }
  if (KAFKA_MECHANISM === "OAUTHBEARER") {
    const oauthBearerProvider = async () => ({ value: KAFKA_PASSWORD });
    options.sasl = { mechanism: "oauthbearer", oauthBearerProvider };
  } else if (KAFKA_MECHANISM) {
    const mechanism = KAFKA_MECHANISM.toLowerCase();
    options.sasl = { mechanism, username: KAFKA_USER, password: KAFKA_PASSWORD };
  }
  return options;
}

async function copy(producer, batch) {
  const transaction = await producer.transaction();
  const { partition } = batch;
  const messages = batch.messages.map(({ value }) => ({ value, partition }));
  await transaction.send({ topic: sink, messages });
  const offset = (BigInt(batch.lastOffset()) + 1n).toString();
  const topics = [{ topic: source, partitions: [{ partition, offset }] }];
  await transaction.sendOffsets({ consumerGroupId: groupId, topics });
  await transaction.commit();
}

function fail(error) {
  console.log("failed:", error.message);
  process.exit(1);
}

if (process.env.COPIER_WORKER) work().catch(fail);
else supervise();
