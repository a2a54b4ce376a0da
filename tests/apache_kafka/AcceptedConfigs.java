import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/** Tells what Kafka says of configs: of the names in the first file, of each line of the second file
    on top of the third one, and of each further file as a whole. */
public class AcceptedConfigs {
    public static void main(String[] args) throws Exception {
        Set<String> known = AbstractKafkaConfig.CONFIG_DEF.names();
        for (String name : Files.readAllLines(Path.of(args[0]))) {
            if (!known.contains(name)) System.out.println(name + ": unknown");
        }
        Properties single = read(args[1]);
        Properties base = read(args[2]);
        for (String name : single.stringPropertyNames()) {
            Map<Object, Object> props = new HashMap<>(base);
            props.put(name, single.getProperty(name));
            check(name + "=" + single.getProperty(name), props);
        }
        for (int at = 3; at < args.length; at++) check(args[at], read(args[at]));
        System.out.println("done");
    }

    private static Properties read(String path) throws Exception {
        Properties found = new Properties();
        try (var in = Files.newInputStream(Path.of(path))) {
            found.load(in);
        }
        return found;
    }

    private static void check(String what, Map<?, ?> props) {
        try {
            new KafkaConfig(props, false);
        } catch (ConfigException | IllegalArgumentException error) {
            System.out.println(what + ": " + error.getMessage());
        }
    }
}
