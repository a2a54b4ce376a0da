package kcluster;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A Kafka cluster that tests break: a new one for each test, or, in a static field, one for all tests
 * of the class.
 *
 * <pre>{@code
 * @RegisterExtension
 * final KCluster kafka = KCluster.of("{brokers: 3, profile: fast, topics: {orders: {}}}");
 * }</pre>
 *
 * <p>It has a lease, so that nothing is left of it if this JVM dies. A refused request throws
 * IllegalStateException with the server's reason.
 */
public final class KCluster
    implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback, AutoCloseable {
    private static final int LEASE_S = 30;
    private static final Duration CONDITION_LIMIT = Duration.ofSeconds(10);

    private final String topology;
    private Server server;
    private ScheduledExecutorService renewal;
    private String path; // null while it does not run
    private String bootstrap;
    private boolean sharedByClass;
    private String since; // what verdicts judge: null for everything

    private KCluster(String topology) {
        this.topology = topology;
    }

    /** A cluster with this topology, as in a topology file: YAML or JSON. */
    public static KCluster of(String topology) {
        return new KCluster(topology);
    }

    /** Run it on this `kcluster serve`, in a container for instance; call this before it starts. */
    public KCluster at(String url, String token) {
        server = new Server(url, token, null);
        return this;
    }

    /** JUnit calls this for a static field, and with one instance for all tests of the class. */
    @Override
    public void beforeAll(ExtensionContext context) {
        sharedByClass = true;
        open();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        close();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        if (sharedByClass) {
            since = mark();
        } else {
            open();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (!sharedByClass) {
            close();
        }
    }

    /** Start it, without JUnit. */
    public KCluster open() {
        if (server == null) {
            server = Server.shared();
        }
        ObjectNode wanted = Server.JSON.createObjectNode();
        wanted.put("topology", topology).put("lease", LEASE_S + "s");
        JsonNode created = server.call("POST", "/v1/clusters", wanted);
        bootstrap = created.get("bootstrap").asText();
        path = "/v1/clusters/" + created.get("id").asText();
        renewal = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "kcluster lease");
            thread.setDaemon(true);
            return thread;
        });
        // Each request renews the lease.
        renewal.scheduleAtFixedRate(() -> status(), LEASE_S / 3, LEASE_S / 3, TimeUnit.SECONDS);
        return this;
    }

    /** Stop it. Does nothing if it does not run: JUnit also calls this after a failed start. */
    @Override
    public void close() {
        if (path == null) {
            return;
        }
        renewal.shutdownNow();
        String stopped = path;
        path = null;
        server.call("DELETE", stopped, null);
    }

    /** For bootstrap.servers. */
    public String bootstrap() {
        running();
        return bootstrap;
    }

    /** The properties with which a client comes in: as the first user, where clients must log in. */
    public Map<String, Object> clientConfig() {
        return clientConfig("");
    }

    /** The properties with which a client comes in as a user, with the user's password. */
    public Map<String, Object> clientConfig(String user) {
        return clientConfig(user, "");
    }

    /** The same by a mechanism of SASL, such as {@code PLAIN}. */
    public Map<String, Object> clientConfig(String user, String mechanism) {
        String query = "?library=java&user=" + encoded(user) + "&mechanism=" + encoded(mechanism);
        JsonNode settings = call("GET", "/client-config" + query, null).get("settings");
        return Server.JSON.convertValue(settings, new TypeReference<Map<String, Object>>() {});
    }

    /** Brokers, partitions and links, as they are now. */
    public JsonNode status() {
        return call("GET", "", null);
    }

    /**
     * Perform an action of scenario files, such as {@code kill: leader(orders-0)}, and wait until
     * the cluster has noticed. The number of the action, for {@link #undo}.
     */
    public int act(String action) {
        return call("POST", "/actions", Server.yaml(action)).get("action").asInt();
    }

    /** Undo an action: start what it killed, heal what it cut. */
    public void undo(int action) {
        call("DELETE", "/actions/" + action, null);
    }

    /** Undo every fault; returns when all replicas are in sync. */
    public void heal() {
        call("POST", "/heal", null);
    }

    /** Wait until a condition of scenario files holds, such as {@code isr(orders-0) = 3}. */
    public void await(String condition) {
        await(condition, CONDITION_LIMIT);
    }

    /** Wait until a condition holds, at most for this time. */
    public void await(String condition, Duration limit) {
        ObjectNode wanted = Server.JSON.createObjectNode();
        wanted.put("until", condition).put("within", limit.toMillis() + "ms");
        call("POST", "/wait", wanted);
    }

    /**
     * Whether the cluster has kept its promises: `outcome`, `reason`, `anomalies`, … In a cluster that
     * the tests of a class share, since this test began.
     */
    public JsonNode verdict() {
        return verdict(since);
    }

    /**
     * The verdict on what was sent and what happened since a moment: a time back, such as {@code 30s},
     * or what {@link #mark} returned; null for everything.
     */
    public JsonNode verdict(String since) {
        return call("GET", since == null ? "/verdict" : "/verdict?since=" + since, null);
    }

    /** This moment, for {@link #verdict(String)}. */
    public String mark() {
        return "@" + status().get("at_ms").asLong();
    }

    /** Fail the test unless {@link #verdict()} is valid; the message has the events and their causes. */
    public void assertValid() {
        assertValid(since);
    }

    /** The same since a moment; null for everything. */
    public void assertValid(String since) {
        JsonNode verdict = verdict(since);
        if (!verdict.get("outcome").asText().equals("valid")) {
            throw new AssertionError(explained(verdict));
        }
    }

    /** Report that the application has processed a record, for {@link #assertProcessedOnce}. */
    public void processed(String topic, int partition, long offset) {
        ObjectNode report = Server.JSON.createObjectNode().put("topic", topic);
        report.putArray("offsets").addArray().add(partition).add(offset);
        call("POST", "/processed", report);
    }

    /** Fail the test unless each record of a topic was reported as processed, once and in order. */
    public void assertProcessedOnce(String topic) {
        JsonNode judged = call("GET", "/processed?topic=" + topic, null);
        if (!judged.get("valid").asBoolean()) {
            StringBuilder text = new StringBuilder();
            judged.get("problems").forEach(problem -> text.append(problem.get("text").asText()).append('\n'));
            throw new AssertionError(text.append("what happened:\n").append(events()).toString());
        }
    }

    /** What happened: its number, the time since the first event, and the number of its cause. */
    public String events() {
        StringBuilder text = new StringBuilder();
        Map<JsonNode, Integer> numbers = new HashMap<>();
        long began = -1;
        for (JsonNode event : call("GET", "/events", null).get("events")) {
            int number = event.get("sequence").asInt();
            numbers.put(event.get("id"), number);
            Integer cause = numbers.get(event.get("cause"));
            long at = event.get("at_ms").asLong();
            began = began < 0 ? at : began;
            text.append(String.format("%4d %+8d ms  %s", number, at - began, event.get("sentence").asText()));
            text.append(cause == null ? "\n" : String.format(" (because of %d)%n", cause));
        }
        return text.toString();
    }

    private JsonNode call(String method, String subpath, Object body) {
        return server.call(method, running() + subpath, body);
    }

    /** Its path in the API. */
    private String running() {
        if (path == null) {
            throw new IllegalStateException(
                "this cluster does not run: add @RegisterExtension to its field, or call open()");
        }
        return path;
    }

    private String explained(JsonNode verdict) {
        StringBuilder text = new StringBuilder();
        text.append(verdict.get("outcome").asText()).append(": ").append(verdict.get("reason").asText());
        for (String findings : new String[] {"anomalies", "violations"}) {
            for (JsonNode finding : verdict.get(findings)) {
                text.append("\n  ").append(finding.get("name").asText());
                text.append(": ").append(finding.get("text").asText());
                finding.get("chain").forEach(link -> text.append("\n    ").append(link.get("text").asText()));
            }
        }
        return text.append("\nwhat happened:\n").append(events()).toString();
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}
