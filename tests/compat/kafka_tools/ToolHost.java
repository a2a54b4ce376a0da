import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools one after the other by their main methods: a JVM for each would take most of
 * the time to start.
 *
 * <p>A request is the class, the arguments and the input; an answer is the exit code and what was
 * printed. Both are on the standard streams, which tools do not see.
 */
public final class ToolHost {
    private static ByteArrayOutputStream printed = new ByteArrayOutputStream();
    private static Integer exitCode;
    private static final List<Runnable> HOOKS = new ArrayList<>();

    /** Ends a tool where it would end its process. */
    private static final class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** Scala keeps the first stream that it sees, so this one is never replaced. */
    private static final class ToPrinted extends OutputStream {
        @Override
        public void write(int one) {
            printed.write(one);
        }

        @Override
        public void write(byte[] bytes, int from, int count) {
            printed.write(bytes, from, count);
        }
    }

    public static void main(String[] ignored) throws IOException {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        PrintStream all = new PrintStream(new ToPrinted(), true);
        System.setOut(all);
        System.setErr(all);
        Exit.Procedure end =
                (code, message) -> {
                    if (exitCode == null) {
                        exitCode = code;
                    }
                    throw new Ended();
                };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        while (true) {
            String tool;
            try {
                tool = requests.readUTF();
            } catch (EOFException closed) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] words = new String[requests.readInt()];
            for (int at = 0; at < words.length; at++) {
                words[at] = requests.readUTF();
            }
            System.setIn(new ByteArrayInputStream(requests.readNBytes(requests.readInt())));
            printed = new ByteArrayOutputStream();
            int code = run(tool, words);
            answers.writeInt(code);
            answers.writeInt(printed.size());
            printed.writeTo(answers);
            answers.flush();
        }
    }

    /** As a process would: what is not caught gives 1, and the hooks are run at the end. */
    private static int run(String tool, String[] words) {
        exitCode = null;
        HOOKS.clear();
        int code = 0;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) words);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                thrown.getCause().printStackTrace();
                code = 1;
            }
        } catch (ReflectiveOperationException unknown) {
            unknown.printStackTrace();
            code = 1;
        }
        HOOKS.forEach(Runnable::run);
        return exitCode == null ? code : exitCode;
    }
}
