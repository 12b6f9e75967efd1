package rocketd.conformance;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Runs the cases side by side in one JVM. Arguments are {@code key=value}: namesrv (host:port), brokers
 * (name=host:port,...), prefix (of topics and groups, so that runs against one server do not meet), only and
 * skip (regular expressions on case names), parallel, accessKey and secretKey (of the administrator).
 *
 * <p>Prints one tab-separated line a case: {@code CASE name ok|failed millis reason}; before it, what a failed
 * case threw, line by line as {@code LOG name text}. {@code ASK stop|kill|start broker-name} asks the parent to do so with a broker; it answers with a line on
 * standard input. The last line is {@code END}.
 */
public final class Main {
    /** A case takes seconds; this is for one that hangs. */
    private static final int DEADLINE_SECONDS = 100;

    private Main() {
    }

    /** One conversation of stock clients with the server; throws when an expectation fails. */
    interface Case {
        void run(Session s) throws Exception;
    }

    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    static void add(String name, Case c) {
        if (CASES.put(name, c) != null) {
            throw new IllegalStateException("two cases " + name);
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> opt = new LinkedHashMap<>();
        for (String a : args) {
            int eq = a.indexOf('=');
            opt.put(a.substring(0, eq), a.substring(eq + 1));
        }
        // The slow ones first: they decide how long the whole run takes.
        OnlyHere.register();
        RetryCases.register();
        AskCases.register();
        ReplyCases.register();
        TraceCases.register();
        TransactionCases.register();
        FailoverCases.register();
        RebalanceCases.register();
        StartPointCases.register();
        PushCases.register();
        PullCases.register();
        LitePullCases.register();
        SendCases.register();
        RefusalCases.register();
        QueryCases.register();
        SqlCases.register();
        ToolCases.register();
        TopicCases.register();
        RestartCases.register();
        AclCases.register();

        Pattern only = Pattern.compile(opt.getOrDefault("only", ".*"));
        Pattern skip = Pattern.compile(opt.getOrDefault("skip", "(?!)"));
        CASES.keySet().removeIf(n -> !only.matcher(n).matches() || skip.matcher(n).matches());

        String accessKey = opt.get("accessKey");
        DefaultMQAdminExt admin = accessKey == null ? new DefaultMQAdminExt(15000)
            : new DefaultMQAdminExt(AclCases.signedBy(accessKey, opt.get("secretKey")), 15000);
        admin.setNamesrvAddr(opt.get("namesrv"));
        admin.setInstanceName(opt.get("prefix") + "-admin");
        admin.start();
        Servers servers = new Servers(opt.get("namesrv"), opt.get("brokers"), admin, CASES.keySet());

        ExecutorService lanes = Executors.newFixedThreadPool(Integer.parseInt(opt.getOrDefault("parallel", "12")));
        List<Future<?>> all = new ArrayList<>();
        for (Map.Entry<String, Case> e : CASES.entrySet()) {
            all.add(lanes.submit(() -> one(e.getKey(), e.getValue(), servers, opt.get("prefix"))));
        }
        for (Future<?> f : all) {
            f.get();
        }
        Servers.say("END");
        // No graceful end of hundreds of client threads: everything has been reported.
        Runtime.getRuntime().halt(0);
    }

    private static void one(String name, Case c, Servers servers, String prefix) {
        long began = System.currentTimeMillis();
        String reason = "";
        ExecutorService own = Executors.newSingleThreadExecutor(r -> new Thread(r, "case " + name));
        Session session = new Session(name, prefix, servers);
        Future<?> f = own.submit(() -> {
            c.run(session);
            return null;
        });
        try {
            f.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            reason = "no end after " + DEADLINE_SECONDS + " s";
            log(name, reason + " at" + stackOf("case " + name));
            f.cancel(true);
        } catch (Exception e) {
            Throwable t = e.getCause() == null ? e : e.getCause();
            reason = String.valueOf(t).split("\n")[0].replace('\t', ' ');
            StringWriter w = new StringWriter();
            t.printStackTrace(new PrintWriter(w));
            log(name, w.toString());
        }
        long took = System.currentTimeMillis() - began;
        own.shutdownNow();
        session.close();
        Servers.say("CASE\t" + name + "\t" + (reason.isEmpty() ? "ok" : "failed") + "\t" + took + "\t" + reason);
    }

    static void log(String name, String text) {
        for (String line : text.split("\n")) {
            Servers.say("LOG\t" + name + "\t" + line.replace("\t", "    "));
        }
    }

    private static String stackOf(String thread) {
        StringBuilder b = new StringBuilder();
        Thread.getAllStackTraces().forEach((t, frames) -> {
            if (t.getName().equals(thread)) {
                for (StackTraceElement f : frames) {
                    b.append("\n\tat ").append(f);
                }
            }
        });
        return b.toString();
    }
}
