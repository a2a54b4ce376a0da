package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import kcluster.KCluster;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A field that is not static is a new cluster for each test: what one test breaks, the next does not see. */
class ClusterPerTestTest {
    @RegisterExtension
    final KCluster kafka = KCluster.of("{brokers: 2, profile: fast}");

    @RepeatedTest(2)
    void eachTestHasAllBrokers() {
        kafka.status().get("brokers").forEach(broker -> assertEquals("up", broker.get("state").asText()));
        kafka.act("kill: 2");
    }

    @Test
    void aClusterThatDoesNotRunSaysSo() {
        KCluster unopened = KCluster.of("{brokers: 1}");
        var error = assertThrows(IllegalStateException.class, unopened::bootstrap);
        assertTrue(error.getMessage().contains("@RegisterExtension"), error.getMessage());
        unopened.close();
    }

    @Test
    void aTopologyThatIsRefusedIsTheOnlyError() {
        KCluster refused = KCluster.of("{brokrs: 1}");
        var error = assertThrows(IllegalStateException.class, refused::open);
        assertTrue(error.getMessage().contains("brokrs"), error.getMessage());
        refused.close();
    }
}
