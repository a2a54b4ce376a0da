package kcluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;

/**
 * The process that runs the clusters: the one at $KCLUSTER_URL, with $KCLUSTER_TOKEN, or `kcluster
 * serve`, started once per JVM. It ends with this JVM, because its standard input does.
 */
final class Server {
    static final ObjectMapper JSON = new ObjectMapper();

    private static Server shared;

    private final HttpClient http = HttpClient.newHttpClient();
    private final String url;
    private final String token;
    @SuppressWarnings("unused") // keeps the pipe to its standard input open
    private final Process process;

    Server(String url, String token, Process process) {
        this.url = url;
        this.token = token;
        this.process = process;
    }

    /** A body that is YAML. */
    record Yaml(String text) {}

    static Yaml yaml(String text) {
        return new Yaml(text);
    }

    static synchronized Server shared() {
        if (shared == null) {
            String url = System.getenv("KCLUSTER_URL");
            shared = url == null ? start() : new Server(url, System.getenv("KCLUSTER_TOKEN"), null);
        }
        return shared;
    }

    private static Server start() {
        String program = System.getenv().getOrDefault("KCLUSTER_COMMAND", "kcluster");
        List<String> command = new ArrayList<>(List.of(program.split(" ")));
        command.addAll(List.of("serve", "--port", "0", "--json", "--exit-with-stdin"));
        try {
            Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
            BufferedReader lines = process.inputReader();
            String ready = lines.readLine();
            if (ready == null) {
                throw new IllegalStateException(String.join(" ", command) + " ended before it was ready");
            }
            JsonNode line = JSON.readTree(ready);
            return new Server(line.get("url").asText(), line.get("token").asText(), process);
        } catch (IOException error) {
            throw new UncheckedIOException(
                String.join(" ", command) + " does not start; $KCLUSTER_COMMAND names another command", error);
        }
    }

    /** Send a request; `body` is JSON, Yaml or null. The answer, or an exception with the reason. */
    JsonNode call(String method, String path, Object body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path))
            .header("Authorization", "Bearer " + token)
            .header("Content-Type", body instanceof Yaml ? "application/yaml" : "application/json");
        String text = body instanceof Yaml yaml ? yaml.text() : body == null ? "" : body.toString();
        request.method(method, HttpRequest.BodyPublishers.ofString(text));
        try {
            HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            JsonNode answer = JSON.readTree(response.body());
            if (response.statusCode() < 300) {
                return answer;
            }
            StringBuilder reason = new StringBuilder(answer.path("detail").asText(response.body()));
            answer.path("state").forEach(line -> reason.append("\n  ").append(line.asText()));
            throw new IllegalStateException(reason.toString());
        } catch (IOException error) {
            throw new UncheckedIOException(method + " " + url + path, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }
}
