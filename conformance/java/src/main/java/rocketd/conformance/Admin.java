package rocketd.conformance;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Runs many mqadmin subcommands in one JVM. Each line of standard input is a command, its arguments separated by
 * tabs; what it prints, on either stream, is printed when it has ended, and after it a line {@code \1END}. Beside
 * the subcommands, to which the name servers are added, there are the clients of {@link AdminClients}, and
 * {@code @during seconds command...} for a command that has no end, {@code @help} for none at all, {@code @cat file} and {@code @ls folder}.
 * The argument is the name servers' list.
 */
public final class Admin {
    private Admin() {
    }

    private static String namesrv;
    private static AdminClients clients;

    public static void main(String[] args) throws Exception {
        namesrv = args[0];
        System.setProperty("rocketmq.client.rebalance.waitInterval", "1000"); // instead of 20 s
        PrintStream stdout = System.out;
        clients = new AdminClients(namesrv);
        wakeServiceThreads(Thread.currentThread());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            PrintStream p = new PrintStream(out, true, StandardCharsets.UTF_8);
            System.setOut(p);
            System.setErr(p);
            try {
                run(line.split("\t", -1));
            } catch (Exception | AssertionError e) {
                e.printStackTrace(p);
            }
            p.flush();
            stdout.write(out.toByteArray());
            stdout.print("\n\u0001END\n");
            stdout.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /**
     * A tool's client that ends waits for a thread of its own, which looks up from an empty queue every three seconds
     * only (NettyEventExecutor). Each of hundreds of commands would take that long; here the thread is woken.
     */
    private static void wakeServiceThreads(Thread main) {
        Thread waker = new Thread(() -> {
            while (true) {
                LockSupport.parkNanos(20_000_000);
                if (Arrays.stream(main.getStackTrace()).noneMatch(f -> f.getClassName().endsWith(".ServiceThread") && f.getMethodName().equals("shutdown"))) {
                    continue;
                }
                Thread[] all = new Thread[Thread.activeCount() + 64];
                for (int i = Thread.enumerate(all) - 1; i >= 0; i--) {
                    if (all[i].getName().startsWith("NettyEventExecutor")) {
                        all[i].interrupt();
                    }
                }
            }
        }, "waker");
        waker.setDaemon(true);
        waker.start();
    }

    private static void run(String[] a) throws Exception {
        switch (a[0]) {
            case "@during":
                during(Integer.parseInt(a[1]), Arrays.copyOfRange(a, 2, a.length));
                break;
            case "@help":
                OnlyHere.mqadmin(new String[0]);
                break;
            case "@cat":
                System.out.println(Files.readString(Path.of(a[1])));
                break;
            case "@ls":
                try (Stream<Path> all = Files.walk(Path.of(a[1]))) {
                    all.filter(Files::isRegularFile).map(p -> Path.of(a[1]).relativize(p)).sorted().forEach(System.out::println);
                }
                break;
            default:
                if (a[0].startsWith("@")) {
                    clients.run(a);
                    break;
                }
                List<String> args = new ArrayList<>(List.of(a));
                if (!args.contains("-n") && !a[0].equals("help")) {
                    args.add("-n");
                    args.add(namesrv);
                }
                OnlyHere.mqadmin(args.toArray(new String[0]));
        }
    }

    /** Ends a command by interrupting its sleep, and waits for its end. */
    private static void during(int seconds, String[] a) throws Exception {
        AtomicReference<Throwable> failed = new AtomicReference<>();
        Thread t = new Thread(() -> {
            try {
                run(a);
            } catch (Exception | AssertionError e) {
                failed.set(e);
            }
        }, "command");
        t.start();
        t.join(seconds * 1000L);
        t.interrupt();
        t.join(20000);
        if (failed.get() != null) {
            throw new Exception(failed.get());
        }
    }
}
