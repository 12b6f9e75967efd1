package rocketd.conformance;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;

/** What a case expects. Every method throws an AssertionError that says what was expected and what came. */
final class Check {
    private Check() {
    }

    static void that(boolean ok, String expected, Object... args) {
        if (!ok) {
            throw new AssertionError("expected " + String.format(expected, args));
        }
    }

    static void equal(Object got, Object want, String what, Object... args) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(String.format(what, args) + ": got " + got + ", want " + want);
        }
    }

    /** Waits for a condition. */
    static void eventually(int seconds, String expected, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + seconds * 1000L;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError("expected within " + seconds + " s: " + expected);
            }
            Thread.sleep(20);
        }
    }

    interface Failing {
        void run() throws Exception;
    }

    /** The broker, or the name server by way of the client, must answer this code, with this text in the remark. */
    static void refused(int code, String remark, Failing f) throws Exception {
        int got;
        String text;
        try {
            f.run();
        } catch (MQBrokerException e) {
            got = e.getResponseCode();
            text = e.getErrorMessage();
            refusedWith(code, remark, got, text);
            return;
        } catch (MQClientException e) {
            got = e.getResponseCode();
            text = e.getErrorMessage() == null ? e.getMessage() : e.getErrorMessage();
            refusedWith(code, remark, got, text);
            return;
        }
        throw new AssertionError("expected code " + code + " (" + remark + "), but it succeeded");
    }

    private static void refusedWith(int code, String remark, int got, String text) {
        if (got != code || !text.contains(remark)) {
            throw new AssertionError("expected code " + code + " with \"" + remark + "\", got " + got + " \"" + text + "\"");
        }
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] b) {
        return new String(b, StandardCharsets.UTF_8);
    }
}
