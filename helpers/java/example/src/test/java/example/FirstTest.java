package example;

import java.util.Map;
import kcluster.KCluster;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class FirstTest {
    @RegisterExtension
    final KCluster kafka = KCluster.of("{brokers: 3, profile: fast, topics: {orders: {}}}");

    @Test
    void survivesItsLeader() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", kafka.bootstrap());
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "before")).get();
            int kill = kafka.act("kill: leader(orders-0)");  // returns when the cluster has noticed
            producer.send(new ProducerRecord<>("orders", "after")).get();
            kafka.undo(kill);
            kafka.await("isr(orders-0) = 3");
        }
        kafka.assertValid();  // if not: what was lost, the events, and the cause of each
    }
}
