import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.EnumSet;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/**
 * Prints what one kafka-clients jar knows of its release, one fact a line, for read_versions.py:
 *   api ID NAME OLDEST LATEST LISTENERS   (LISTENERS: zk,broker,controller)
 *   errors HIGHEST_CODE
 * By reflection, for the classes changed from release to release.
 * Run: java -cp kafka-clients-X.jar:slf4j-api.jar tools/BrokerVersions.java
 */
public final class BrokerVersions {
    public static void main(String[] args) throws Exception {
        for (ApiKeys api : ApiKeys.values()) {
            String listeners = listeners(api);
            short latest = latest(api);
            if (!listeners.isEmpty() && latest >= oldest(api)) {
                System.out.println("api " + api.id + " " + api.name() + " " + oldest(api) + " " + latest + " " + listeners);
            }
        }
        int highest = 0;
        for (Errors error : Errors.values()) {
            highest = Math.max(highest, error.code());
        }
        System.out.println("errors " + highest);
    }

    private static short oldest(ApiKeys api) {
        try {
            Field listed = ApiKeys.class.getField("PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION");
            if (api == ApiKeys.PRODUCE) {
                return listed.getShort(null);
            }
        } catch (ReflectiveOperationException olderThanThat) {
            return api.oldestVersion();
        }
        return api.oldestVersion();
    }

    /** Without an unstable latest version, which brokers list only if told to (KIP-848's time on). */
    private static short latest(ApiKeys api) throws ReflectiveOperationException {
        try {
            return (short) ApiKeys.class.getMethod("latestVersion", boolean.class).invoke(api, false);
        } catch (NoSuchMethodException olderThanThat) {
            return api.latestVersion();
        }
    }

    private static String listeners(ApiKeys api) throws ReflectiveOperationException {
        try {
            Object type = ApiKeys.class.getField("messageType").get(api);
            Collection<?> found = (Collection<?>) type.getClass().getMethod("listeners").invoke(type);
            StringBuilder text = new StringBuilder();
            for (Object listener : found) {
                text.append(text.length() == 0 ? "" : ",").append(listener.toString().toLowerCase().replace("zk_broker", "zk"));
            }
            return text.toString();
        } catch (NoSuchFieldException | NoSuchMethodException olderThanThat) {
            return isEnabled(api) ? "zk" : "";
        }
    }

    /** 2.7 knows the quorum's APIs and does not serve them. */
    private static boolean isEnabled(ApiKeys api) throws ReflectiveOperationException {
        try {
            return (boolean) ApiKeys.class.getField("isEnabled").get(api);
        } catch (NoSuchFieldException olderThanThat) {
            return true;
        }
    }
}
