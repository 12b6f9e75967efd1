package rocketd.conformance;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs many mqadmin subcommands in one JVM. Each line of standard input is a command, its arguments separated by
 * tabs; what it prints, on either stream, is printed when it has ended, and after it a line {@code \1END}. Beside
 * the subcommands there are {@code @send topic broker queueId tag keys body}, {@code @consume topic group count}
 * (commits, and goes) and {@code @online topic group} (stays). The argument is the name server.
 */
public final class Admin {
    /** Reaches what the tool keeps to itself: its list of subcommands, to which main0 adds them all each time. */
    private static final class Tool extends MQAdminStartup {
        static void run(String[] args) {
            subCommandList.clear();
            main0(args, null);
        }
    }

    private Admin() {
    }

    private static String namesrv;
    private static DefaultMQProducer producer;
    private static final List<DefaultMQPushConsumer> ONLINE = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        namesrv = args[0];
        PrintStream stdout = System.out;
        producer = new DefaultMQProducer("G-admin-producer");
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName("producer");
        producer.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            PrintStream p = new PrintStream(out, true, StandardCharsets.UTF_8);
            System.setOut(p);
            System.setErr(p);
            try {
                run(line.split("\t", -1));
            } catch (Exception e) {
                e.printStackTrace(p);
            }
            p.flush();
            stdout.write(out.toByteArray());
            stdout.print("\n\u0001END\n");
            stdout.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(String[] a) throws Exception {
        switch (a[0]) {
            case "@send":
                Message m = new Message(a[1], a[4], a[5], a[6].getBytes(StandardCharsets.UTF_8));
                SendResult r = producer.send(m, new MessageQueue(a[1], a[2], Integer.parseInt(a[3])));
                System.out.printf("%s %s %d%n", r.getMsgId(), r.getOffsetMsgId(), r.getQueueOffset());
                break;
            case "@consume":
                Received got = new Received();
                DefaultMQPushConsumer c = consumer(a[1], a[2], got);
                got.await(Integer.parseInt(a[3]), 30);
                c.shutdown();
                System.out.println("consumed " + got.size());
                break;
            case "@online":
                DefaultMQPushConsumer stays = consumer(a[1], a[2], new Received());
                ONLINE.add(stays);
                System.out.println("online " + stays.buildMQClientId());
                break;
            default:
                List<String> args = new ArrayList<>(List.of(a));
                args.add("-n");
                args.add(namesrv);
                Tool.run(args.toArray(new String[0]));
        }
    }

    private static DefaultMQPushConsumer consumer(String topic, String group, Received got) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName(group);
        c.setHeartbeatBrokerInterval(2000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        c.start();
        return c;
    }
}
