import test from "node:test";

import { Kafka } from "kafkajs";
import { start } from "kcluster";

test("survives its leader", async (t) => {
  const cluster = await start(t, { brokers: 3, profile: "fast", topics: { orders: {} } });
  const kafka = new Kafka({
    brokers: cluster.brokers,
    retry: { initialRetryTime: 20, maxRetryTime: 100, retries: 50 },
  });
  const producer = kafka.producer();
  await producer.connect();

  await producer.send({ topic: "orders", messages: [{ value: "before" }] });
  const kill = await cluster.act({ kill: "leader(orders-0)" }); // returns when the cluster has noticed
  await producer.send({ topic: "orders", messages: [{ value: "after" }] });
  await cluster.undo(kill);
  await cluster.until("isr(orders-0) = 3");
  await producer.disconnect();
  await cluster.assertValid(); // if not: what was lost, the events, and the cause of each
});
