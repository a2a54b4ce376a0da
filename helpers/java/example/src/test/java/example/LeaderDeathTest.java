package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import kcluster.KCluster;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class LeaderDeathTest {
    @RegisterExtension
    static final KCluster kafka = KCluster.of("""
        brokers: 3
        profile: fast
        topics:
          orders: {partitions: 1, config: {min.insync.replicas: 2}}
        """);

    @Test
    void recordsSurviveTheDeathOfTheirLeader() throws Exception {
        long began = System.nanoTime();
        Map<String, Object> settings = Map.of("bootstrap.servers", kafka.bootstrap(), "retry.backoff.ms", 20);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "before")).get();
            int kill = kafka.act("kill: leader(orders-0)");
            producer.send(new ProducerRecord<>("orders", "after")).get();
            kafka.undo(kill);
            kafka.await("isr(orders-0) = 3");
        }
        assertEquals(List.of("before", "after"), read(settings, 2));
        kafka.assertProcessedOnce("orders");
        kafka.assertValid();
        System.out.printf("leader's death: %d ms%n", (System.nanoTime() - began) / 1_000_000);
    }

    @Test
    void aLostRecordIsReportedWithItsCause() throws Exception {
        try (KCluster cluster = KCluster.of("""
                brokers: 3
                profile: fast
                topics:
                  orders: {partitions: 1, replication_factor: 1}
                """).open()) {
            Map<String, Object> settings = Map.of("bootstrap.servers", cluster.bootstrap());
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>("orders", "lost")).get();
            }

            cluster.undo(cluster.act("kill: {brokers: leader(orders-0), how: wipe}"));

            AssertionError error = assertThrows(AssertionError.class, cluster::assertValid);
            assertTrue(error.getMessage().matches("(?s).*lost-write.*because of.*"), error.getMessage());

            // What follows is judged alone.
            String mark = cluster.mark();
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>("orders", "kept")).get();
            }
            cluster.assertValid(mark);
        }
    }

    private static List<String> read(Map<String, Object> settings, int count) {
        List<String> values = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var orders = List.of(new TopicPartition("orders", 0));
            consumer.assign(orders);
            consumer.seekToBeginning(orders);
            while (values.size() < count) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> {
                    values.add(record.value());
                    kafka.processed(record.topic(), record.partition(), record.offset());
                });
            }
        }
        return values;
    }
}
