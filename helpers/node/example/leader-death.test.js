import assert from "node:assert/strict";
import test from "node:test";

import kafkajs from "kafkajs";
import { start } from "kcluster";

test("records survive the death of their leader", async (t) => {
  const began = performance.now();
  const cluster = await start(t, {
    brokers: 3,
    profile: "fast",
    topics: { orders: { partitions: 1, config: { "min.insync.replicas": 2 } } },
  });
  const kafka = client(cluster);

  const producer = kafka.producer();
  await producer.connect();
  const send = (value) => producer.send({ topic: "orders", messages: [{ value }] });
  await send("before");
  const kill = await cluster.act({ kill: "leader(orders-0)" });
  await send("after");
  await cluster.undo(kill);
  await cluster.until("isr(orders-0) = 3");
  await producer.disconnect();

  assert.deepEqual(await read(kafka, 2, cluster), ["before", "after"]);
  await cluster.assertProcessedOnce("orders");
  await cluster.assertValid();
  t.diagnostic(`leader's death: ${Math.round(performance.now() - began)} ms`);
});

test("a lost record is reported with its cause", async (t) => {
  const cluster = await start(t, {
    brokers: 3,
    profile: "fast",
    topics: { orders: { partitions: 1, replication_factor: 1 } },
  });
  const producer = client(cluster).producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value: "lost" }] });

  await cluster.undo(await cluster.act({ kill: { brokers: "leader(orders-0)", how: "wipe" } }));

  await assert.rejects(
    cluster.assertValid(),
    /lost-write[\s\S]*[+]\d+ ms {2}broker 1: [\s\S]*because of/,
  );

  // What follows is judged alone.
  const since = await cluster.mark();
  await producer.send({ topic: "orders", messages: [{ value: "kept" }] });
  await producer.disconnect();
  await cluster.assertValid({ since });
});

function client(cluster) {
  return new kafkajs.Kafka({
    brokers: cluster.brokers,
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 20, maxRetryTime: 100, retries: 50 },
  });
}

async function read(kafka, count, cluster) {
  const values = [];
  const consumer = kafka.consumer({ groupId: "readers", maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  await new Promise((resolve, reject) => {
    const eachMessage = async ({ topic, partition, message }) => {
      values.push(String(message.value));
      await cluster.processed(topic, partition, message.offset);
      if (values.length === count) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return values;
}
