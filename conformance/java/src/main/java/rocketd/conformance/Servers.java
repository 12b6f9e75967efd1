package rocketd.conformance;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The servers under test, and the line to the parent process, which can stop one. */
final class Servers {
    /** The brokers by their role in the cases. The Go test gives them these names. */
    static final String A = "broker-a"; // enablePropertyFilter=true
    /** autoCreateTopicEnable=false, accessMessageInMemoryMaxRatio=0, traceOn=false; the name is what AllocateMessageQueueByMachineRoom wants. */
    static final String B = "room-1@broker-b";
    /** Is stopped during the run. */
    static final String C = "broker-c";
    /** Is killed and stopped by one case; there only when the cases that restart brokers run. */
    static final String D = "broker-d";

    final String namesrv;
    final Map<String, String> addrs = new LinkedHashMap<>();
    final DefaultMQAdminExt admin;

    private final Set<String> selected;
    private final Map<String, CountDownLatch> stopped = new HashMap<>();
    private final Map<String, Integer> waiting = new HashMap<>();
    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

    Servers(String namesrv, String brokers, DefaultMQAdminExt admin, Set<String> selected) {
        this.namesrv = namesrv;
        this.admin = admin;
        this.selected = selected;
        for (String b : brokers.split(",")) {
            int eq = b.lastIndexOf('=');
            addrs.put(b.substring(0, eq), b.substring(eq + 1));
        }
    }

    String addr(String broker) {
        String a = addrs.get(broker);
        if (a == null) {
            throw new IllegalStateException("no broker " + broker);
        }
        return a;
    }

    /** Stops a broker when all the selected cases of the given names have come here. */
    void stopWith(String broker, Set<String> cases) throws Exception {
        CountDownLatch done;
        boolean last;
        synchronized (this) {
            done = stopped.computeIfAbsent(broker, b -> new CountDownLatch(1));
            long expected = cases.stream().filter(selected::contains).count();
            last = waiting.merge(broker, 1, Integer::sum) == expected;
        }
        if (last) {
            ask("stop", broker);
            done.countDown();
        }
        if (!done.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException(broker + " was not stopped");
        }
    }

    /** Asks the parent to stop, kill or start a broker, and waits until that is done. */
    synchronized void ask(String what, String broker) throws IOException {
        say("ASK\t" + what + "\t" + broker);
        String answer = in.readLine();
        if (!"done".equals(answer)) {
            throw new IllegalStateException(what + " " + broker + ": " + answer);
        }
    }

    /** One line (or several at once) on standard output, unmixed with those of other threads. */
    static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
