import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.ArrayFilters;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.Cursor;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DatabaseResolver;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.Missing;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.backend.memory.MemoryCollection;
import de.bwaldvogel.mongo.backend.memory.MemoryDatabase;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.NoopOplog;
import de.bwaldvogel.mongo.oplog.Oplog;
import io.netty.channel.Channel;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A server in memory that speaks MongoDB's protocol, on 127.0.0.1 only.
 *
 * <p>It reports version 7.0, because the Go driver refuses the newest version
 * that mongo-java-server implements. Where the product relies on MongoDB and
 * the library is more forgiving, the classes below are as strict as MongoDB.
 * docs/deployment.md lists both: what is relied on, and what is still
 * forgiven or missing. Each rule has a Go test beside this directory.
 *
 * <p>A second argument "lax" starts the library as it is, to see those tests fail.
 */
public final class TestServer {
    private TestServer() {}

    public static void main(String[] args) {
        MemoryBackend backend = args.length > 1 && args[1].equals("lax") ? new MemoryBackend() : new StrictBackend();
        MongoServer server = new MongoServer(backend.version(new Version(List.of(7, 0, 0), 21)));
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        System.out.println("mongodb://127.0.0.1:" + server.getLocalAddress().getPort());
    }

    private record Version(List<Integer> getVersionArray, int getWireVersion) implements MongoVersion {}
}

/** All databases, and the TTL monitor: it looks every second, or as often as ttlMonitorSeconds says; MongoDB's every minute. */
final class StrictBackend extends MemoryBackend {
    private static final long TTL_SECONDS = Long.getLong("ttlMonitorSeconds", 1);
    private final Map<String, StrictDatabase> open = new ConcurrentHashMap<>();

    StrictBackend() {
        new Timer("TTL monitor", true).schedule(new TimerTask() {
            @Override
            public void run() {
                try {
                    open.values().forEach(database -> database.removeExpired(Instant.now(getClock())));
                } catch (RuntimeException e) { // which would end the monitor
                    e.printStackTrace();
                }
            }
        }, 1000L * TTL_SECONDS, 1000L * TTL_SECONDS);
    }

    @Override
    public MemoryDatabase openOrCreateDatabase(String name) {
        return open.computeIfAbsent(name, absent -> new StrictDatabase(absent, getCursorRegistry()));
    }

    @Override
    protected Document handleGetMore(String database, String command, Document query) {
        if (StrictDatabase.CURSORS_SHARE) {
            query.putIfAbsent("batchSize", StrictDatabase.MAX_BATCH);
        }
        return super.handleGetMore(database, command, query);
    }

    @Override
    public void dropDatabase(String name) {
        open.remove(name);
        super.dropDatabase(name);
    }
}

/** A database that runs one command at a time and checks it before. */
final class StrictDatabase extends MemoryDatabase {
    private static final int MAX_WRITES = 1000; // as isMaster reports it
    private static final int FIRST_BATCH = 101; // as MongoDB's; the library returns all that is left
    static final int MAX_BATCH = 20_000; // MongoDB's is 16 MiB
    /** Cursors return documents in batches, without copying them: for many that nothing changes meanwhile. */
    static final boolean CURSORS_SHARE = Boolean.getBoolean("cursorsShare");

    StrictDatabase(String name, CursorRegistry cursors) {
        super(name, cursors);
    }

    @Override
    protected MemoryCollection openOrCreateCollection(String name, CollectionOptions options) {
        return new StrictCollection(this, name, options, cursorRegistry);
    }

    /** Runs the command. The answer is a copy: it is encoded later, when its documents may have changed. */
    @Override
    public synchronized Document handleCommand(Channel channel, String command, Document query, DatabaseResolver resolver, Oplog oplog) {
        Commands.check(command, query);
        UnaryOperator<Document> library = one -> super.handleCommand(channel, command, one, resolver, oplog);
        if (command.equals("createIndexes")) {
            checkIndexes(query);
        }
        if (CURSORS_SHARE && command.equals("find")) {
            query.putIfAbsent("batchSize", FIRST_BATCH);
        }
        Document answer = switch (command) {
            case "update" -> writes(query, "updates", library);
            case "delete" -> writes(query, "deletes", library);
            case "insert" -> writes(query, "documents", library);
            default -> library.apply(query);
        };
        return answer.cloneDeeply();
    }

    /** Runs writes one by one, so that n counts those that were done and an error stops the rest, unless ordered is false. */
    private static Document writes(Document query, String list, UnaryOperator<Document> library) {
        List<?> all = query.get(list) instanceof List<?> given ? given : List.of();
        if (all.isEmpty() || all.size() > MAX_WRITES) {
            throw new MongoServerError(16, "InvalidLength", "Write batch sizes must be between 1 and " + MAX_WRITES + ". Got " + all.size());
        }
        all.forEach(write -> Commands.checkWrite(list, (Document) write));
        boolean ordered = !Boolean.FALSE.equals(query.get("ordered"));
        int n = 0;
        int modified = 0;
        List<Document> upserted = new ArrayList<>();
        List<Document> errors = new ArrayList<>();
        for (int i = 0; i < all.size() && (errors.isEmpty() || !ordered); i++) {
            Document one = query.clone();
            one.put(list, List.of(all.get(i)));
            Document answer = runOne(list, one, library);
            n += (Integer) answer.get("n");
            modified += (Integer) answer.getOrDefault("nModified", 0);
            addAt(i, answer.get("upserted"), upserted);
            addAt(i, answer.get("writeErrors"), errors);
        }
        Document response = new Document("n", n).append("nModified", modified);
        response.putIfNotNull("upserted", upserted.isEmpty() ? null : upserted);
        response.putIfNotNull("writeErrors", errors.isEmpty() ? null : errors);
        return response.append("ok", 1.0);
    }

    /** Runs the command with one write; an error is that of the write, not of the command. */
    private static Document runOne(String list, Document command, UnaryOperator<Document> library) {
        try {
            if (list.equals("updates")) {
                Updates.check(((Document) ((List<?>) command.get(list)).get(0)).get("u"));
            }
            Document answer = library.apply(command);
            return answer.containsKey("writeErrors") ? answer.append("n", 0) : answer;
        } catch (MongoServerError e) {
            Document error = new Document("code", e.getCode()).append("codeName", e.getCodeName()).append("errmsg", e.getMessageWithoutErrorCode());
            return new Document("n", 0).append("writeErrors", List.of(error));
        }
    }

    /** Adds what a command of one write reports as that of the write at the index. */
    private static void addAt(int index, Object reported, List<Document> all) {
        if (reported instanceof Iterable<?> list) {
            for (Object entry : list) {
                Document moved = new Document("index", index);
                ((Document) entry).forEach(moved::putIfAbsent);
                all.add(moved);
            }
        }
    }

    /** Refuses what is no TTL index, and an index that differs from the one of that name or key. */
    private void checkIndexes(Document query) {
        String namespace = getFullCollectionNamespace((String) query.get("createIndexes"));
        for (Object entry : (List<?>) query.get("indexes")) {
            Document index = (Document) entry;
            boolean timed = index.get("expireAfterSeconds") instanceof Number && ((Document) index.get("key")).size() == 1;
            if (index.containsKey("expireAfterSeconds") && !timed) {
                throw new MongoServerError(67, "CannotCreateIndex", "a TTL index is of one field, and expireAfterSeconds is a number: " + index);
            }
            for (Document there : indexesOf(namespace)) {
                boolean alike = there.get("name").equals(index.get("name")) || same("key", there, index);
                if (alike && !(same("key", there, index) && same("unique", there, index) && same("expireAfterSeconds", there, index))) {
                    throw new MongoServerError(85, "IndexOptionsConflict", "an index of that name or key is there: " + there);
                }
            }
        }
    }

    private static boolean same(String option, Document there, Document index) {
        return String.valueOf(there.get(option)).equals(String.valueOf(index.get(option)));
    }

    private List<Document> indexesOf(String namespace) {
        Stream<Document> all = indexes.get() == null ? Stream.of() : indexes.get().queryAllAsStream();
        return all.filter(i -> namespace == null || i.get("ns").equals(namespace)).collect(Collectors.toList());
    }

    /** Removes what the TTL indexes of the database let expire before now. */
    synchronized void removeExpired(Instant now) {
        for (Document index : indexesOf(null)) {
            MongoCollection<Integer> collection = resolveCollection(((String) index.get("ns")).substring(databaseName.length() + 1), false);
            if (collection != null && index.get("expireAfterSeconds") instanceof Number seconds) {
                Document expired = new Document("$lte", now.minusSeconds(seconds.longValue())); // true of dates only
                String field = ((Document) index.get("key")).keySet().iterator().next();
                collection.deleteDocuments(new Document(field, expired), 0, NoopOplog.get());
            }
        }
    }

    @Override
    public synchronized void drop(Oplog oplog) {
        super.drop(oplog);
    }
}

/** A collection whose updates obey {@link Updates}, and which finds an _id by its index. */
final class StrictCollection extends MemoryCollection {
    StrictCollection(StrictDatabase database, String name, CollectionOptions options, CursorRegistry cursors) {
        super(database, name, options, cursors);
    }

    @Override
    public synchronized Document updateDocuments(Document selector, Document update, ArrayFilters filters, boolean multi, boolean upsert, Oplog oplog) {
        for (Document document : queryDocuments(selector, null, 0, multi ? 0 : 1, 0, null)) {
            Updates.checkOn(document, update);
        }
        return super.updateDocuments(selector, Updates.inMilliseconds(update), filters, multi, upsert, oplog);
    }

    @Override
    public synchronized Document findAndModify(Document query) {
        Document update = (Document) query.getOrDefault("update", new Document());
        Updates.check(update);
        Document filter = (Document) query.getOrDefault("query", new Document());
        for (Document document : queryDocuments(filter, (Document) query.get("sort"), 0, 1, 0, null)) {
            Updates.checkOn(document, update);
        }
        query.replace("update", Updates.inMilliseconds(update));
        return super.findAndModify(query);
    }

    /** Uses the index of _id for filters of further fields, too: the library would look at every document. */
    @Override
    protected QueryResult queryDocuments(Document query, Document orderBy, int skip, int limit, int batchSize, Document fields) {
        if (query.size() > 1 && query.get("_id") != null) {
            Document id = new Document("_id", query.get("_id"));
            for (Index<Integer> index : getIndexes()) {
                if (index.canHandle(id)) {
                    return matchDocuments(query, index.getPositions(id), orderBy, skip, limit, batchSize, fields);
                }
            }
        }
        return super.queryDocuments(query, orderBy, skip, limit, batchSize, fields);
    }

    /** Keeps copies of the documents, because they may change before the cursor reaches them, unless cursorsShare is set. */
    @Override
    protected Cursor createCursor(List<Document> remaining) {
        if (StrictDatabase.CURSORS_SHARE) {
            return super.createCursor(remaining);
        }
        return super.createCursor(remaining.stream().map(Document::cloneDeeply).collect(Collectors.toList()));
    }
}

/** What MongoDB refuses of commands and the library would ignore. */
final class Commands {
    /** The fields that the library heeds. Those that it would ignore (hint, collation, let) are left out, and so refused. */
    private static final Map<String, Set<String>> FIELDS = Map.of(
        "find", Set.of("filter", "sort", "projection", "limit", "skip", "batchSize", "singleBatch"),
        "aggregate", Set.of("pipeline", "cursor", "allowDiskUse"),
        "insert", Set.of("documents", "ordered", "bypassDocumentValidation"),
        "update", Set.of("updates", "ordered", "bypassDocumentValidation"),
        "delete", Set.of("deletes", "ordered"),
        "findAndModify", Set.of("query", "sort", "remove", "update", "new", "fields", "upsert", "arrayFilters", "bypassDocumentValidation"),
        "updates", Set.of("q", "u", "multi", "upsert", "arrayFilters"), // of each
        "deletes", Set.of("q", "limit"));
    private static final Set<String> GENERIC = Set.of("$db", "$readPreference", "comment", "maxTimeMS", "readConcern", "writeConcern");

    private Commands() {}

    static void check(String command, Document query) {
        checkFields(command, query);
        Object w = query.get("writeConcern") instanceof Document concern ? concern.getOrDefault("w", 1) : 1;
        if (!w.equals("majority") && !(w instanceof Number n && n.intValue() >= 0 && n.intValue() <= 1)) {
            throw new MongoServerError(2, "BadValue", "cannot use 'w' " + w + " when a host is not replicated");
        }
        Object level = query.get("readConcern") instanceof Document concern ? concern.getOrDefault("level", "local") : "local";
        if (!Set.of("local", "available", "majority").contains(level)) {
            throw new MongoServerError(2, "BadValue", "readConcern.level " + level + " is not a valid value");
        }
    }

    static void checkWrite(String list, Document write) {
        checkFields(list, write);
        if (list.equals("deletes") && !(write.get("limit") instanceof Number n && (n.intValue() == 0 || n.intValue() == 1))) {
            throw new MongoServerError(9, "FailedToParse", "The limit field in delete objects must be 0 or 1. Got " + write.get("limit"));
        }
    }

    private static void checkFields(String what, Document given) {
        for (String field : given.keySet()) {
            if (FIELDS.containsKey(what) && !field.equals(what) && !GENERIC.contains(field) && !FIELDS.get(what).contains(field)) {
                throw new MongoServerError(40415, "BSON field '" + what + "." + field + "' is an unknown field.");
            }
        }
    }
}

/** What MongoDB refuses of updates and the library would do. */
final class Updates {
    private Updates() {}

    /** Checks an update by itself, whether it finds a document or not. */
    static void check(Object given) {
        if (!(given instanceof Document update)) {
            throw new MongoServerError(238, "NotImplemented", "the test server has no updates by pipeline");
        }
        if (update.isEmpty() || !update.keySet().iterator().next().startsWith("$")) {
            return; // a replacement
        }
        List<String> paths = new ArrayList<>();
        for (Entry<String, Object> entry : update.entrySet()) {
            if (!entry.getKey().startsWith("$") || !(entry.getValue() instanceof Document changes)) {
                throw new MongoServerError(9, "FailedToParse", "Unknown modifier: " + entry);
            }
            changes.keySet().forEach(path -> addPath(path, paths));
        }
    }

    private static void addPath(String path, List<String> paths) {
        if (List.of(path.split("\\.", -1)).contains("")) {
            throw new MongoServerError(56, "EmptyFieldName", "The update path '" + path + "' contains an empty field name");
        }
        if (path.startsWith("_id.")) {
            throw new MongoServerError(66, "ImmutableField", "Performing an update on the path '" + path + "' would modify the immutable field '_id'");
        }
        for (String other : paths) {
            if ((path + ".").startsWith(other + ".") || (other + ".").startsWith(path + ".")) {
                throw new MongoServerError(40, "ConflictingUpdateOperators", "Updating the path '" + path + "' would create a conflict at '" + other + "'");
            }
        }
        paths.add(path);
    }

    /** Checks an update against a document that it is about to change. */
    static void checkOn(Document document, Document update) {
        for (Entry<String, Object> operator : update.entrySet()) {
            if (!operator.getKey().startsWith("$") || operator.getKey().equals("$unset")) {
                continue;
            }
            for (Entry<String, Object> change : ((Document) operator.getValue()).entrySet()) {
                Object value = valueAt(document, change.getKey());
                if (operator.getKey().equals("$inc") && value == null) {
                    throw new MongoServerError(14, "TypeMismatch", "Cannot apply $inc to a null: " + change);
                }
                if (operator.getKey().equals("$inc")) {
                    checkSum(change.getKey(), value, change.getValue());
                }
            }
        }
    }

    private static void checkSum(String path, Object value, Object summand) {
        try {
            if (Stream.of(value, summand).allMatch(n -> n instanceof Long || n instanceof Integer)) {
                Math.addExact(((Number) value).longValue(), ((Number) summand).longValue());
            }
        } catch (ArithmeticException e) {
            throw new MongoServerError(2, "BadValue", "Failed to apply $inc operations to current value (" + value + ") of '" + path + "'");
        }
    }

    /** The value at a path. A path cannot be made through null. */
    private static Object valueAt(Document document, String path) {
        Object value = document;
        for (String name : path.split("\\.")) {
            if (value == null) {
                throw new MongoServerError(28, "PathNotViable", "Cannot create field '" + name + "' in a null of '" + path + "'");
            }
            value = value instanceof Document d ? d.getOrMissing(name) : Missing.getInstance();
        }
        return value;
    }

    /** Sets the dates of $currentDate as MongoDB does, in milliseconds: finer ones are never found again. */
    static Document inMilliseconds(Document update) {
        if (!(update.get("$currentDate") instanceof Document dates) || !dates.values().stream().allMatch(Boolean.TRUE::equals)) {
            return update;
        }
        Document result = update.clone();
        Document set = update.get("$set") instanceof Document given ? given.clone() : new Document();
        dates.keySet().forEach(path -> set.put(path, Instant.now().truncatedTo(ChronoUnit.MILLIS)));
        result.remove("$currentDate");
        result.put("$set", set);
        return result;
    }
}
