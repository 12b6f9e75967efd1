package rocketd.conformance;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Asks a name server over TLS, then begins a second handshake on the connection and asks again: with TLS 1.2 that is a renegotiation,
 * with 1.3 an update of the keys. Go's client can do neither of its own accord. Prints a line for each version: {@code 1.2 served},
 * or {@code 1.2 refused} when the connection ends over it. The arguments are host and port.
 */
public final class Handshakes {
    private Handshakes() {
    }

    public static void main(String[] args) throws Exception {
        TrustManager everyone = new X509TrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) {
            }

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) {
            }

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {everyone}, new SecureRandom());
        for (String version : new String[] {"1.2", "1.3"}) {
            try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(args[0], Integer.parseInt(args[1]))) {
                socket.setSoTimeout(20_000);
                socket.setEnabledProtocols(new String[] {"TLSv" + version});
                ask(socket);
                System.out.println(version + " " + again(socket));
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String again(SSLSocket socket) throws Exception {
        try {
            socket.startHandshake();
            ask(socket);
            return "served";
        } catch (SSLException | SocketException e) {
            return "refused";
        }
    }

    /** The route of a topic that need not exist: any answer will do. */
    private static void ask(SSLSocket socket) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(105, null);
        request.addExtField("topic", "TBW102");
        ByteBuffer frame = request.encode();
        byte[] bytes = new byte[frame.remaining()];
        frame.get(bytes);
        socket.getOutputStream().write(bytes);
        socket.getOutputStream().flush();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        if (RemotingCommand.decode(answer).getOpaque() != request.getOpaque()) {
            throw new IOException("the answer is to another request");
        }
    }
}
