import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DatabaseResolver;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.backend.memory.MemoryDatabase;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.oplog.Oplog;
import io.netty.channel.Channel;
import java.util.ArrayList;
import java.util.List;

/**
 * A server in memory that speaks MongoDB's protocol, on 127.0.0.1 only.
 *
 * <p>It says that it is 7.0, because the Go driver refuses the newest version
 * that mongo-java-server knows by itself. What it cannot do all the same is
 * named where tests skip: validators, sessions, authentication.
 *
 * <p>Where the product relies on MongoDB and the library is more forgiving,
 * {@link StrictDatabase} is as strict as MongoDB.
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

    private static final class StrictBackend extends MemoryBackend {
        @Override
        public MemoryDatabase openOrCreateDatabase(String name) {
            return new StrictDatabase(name, getCursorRegistry());
        }
    }

    /** A database whose ordered bulks stop at their first error. */
    private static final class StrictDatabase extends MemoryDatabase {
        StrictDatabase(String name, CursorRegistry cursors) {
            super(name, cursors);
        }

        @Override
        public Document handleCommand(Channel channel, String command, Document query, DatabaseResolver resolver, Oplog oplog) {
            boolean ordered = !Boolean.FALSE.equals(query.get("ordered")); // MongoDB's default is true
            if (!command.equalsIgnoreCase("update") || !ordered) {
                return super.handleCommand(channel, command, query, resolver, oplog);
            }
            return orderedUpdate(channel, command, query, resolver, oplog);
        }

        /** Runs one update after the other and leaves out those behind an error. */
        private synchronized Document orderedUpdate(Channel channel, String command, Document query, DatabaseResolver resolver, Oplog oplog) {
            int matched = 0;
            int modified = 0;
            List<Document> upserted = new ArrayList<>();
            List<Document> errors = new ArrayList<>();
            List<?> updates = (List<?>) query.get("updates");
            for (int i = 0; i < updates.size() && errors.isEmpty(); i++) {
                Document one = query.clone();
                one.put("updates", List.of(updates.get(i)));
                Document answer = super.handleCommand(channel, command, one, resolver, oplog);
                matched += ((Number) answer.get("n")).intValue();
                modified += ((Number) answer.get("nModified")).intValue();
                addAt(i, answer.get("upserted"), upserted);
                addAt(i, answer.get("writeErrors"), errors);
            }
            Document response = new Document("n", matched).append("nModified", modified);
            if (!upserted.isEmpty()) {
                response.put("upserted", upserted);
            }
            if (!errors.isEmpty()) {
                response.put("writeErrors", errors);
            }
            return response.append("ok", 1.0);
        }

        /** Adds what an update of one reports as that of the update at the index. */
        private static void addAt(int index, Object reported, List<Document> all) {
            if (reported instanceof Iterable<?> list) {
                for (Object entry : list) {
                    Document moved = ((Document) entry).clone();
                    moved.put("index", index);
                    all.add(moved);
                }
            }
        }
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(args[0]);
        MongoServer server = new MongoServer(new StrictBackend().version(new Version()));
        server.bind("127.0.0.1", port);
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        System.out.println("mongodb://127.0.0.1:" + server.getLocalAddress().getPort());
    }
}
