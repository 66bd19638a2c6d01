import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * A server in memory that speaks MongoDB's protocol, on 127.0.0.1 only.
 *
 * <p>It says that it is 7.0, because the Go driver refuses the newest version
 * that mongo-java-server knows by itself. What it cannot do all the same is
 * named where tests skip: TTL deletion, validators, sessions, authentication.
 */
public final class TestServer {
    private TestServer() {}

    private static final class Version implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(7, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 21;
        }
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(args[0]);
        MongoServer server = new MongoServer(new MemoryBackend().version(new Version()));
        server.bind("127.0.0.1", port);
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        System.out.println("mongodb://127.0.0.1:" + server.getLocalAddress().getPort());
    }
}
