// Package bolt keeps everything in one local file: the default store, for one process on one
// machine, with nothing else to install.
//
// The file is a bbolt database with mode 0600. Reads run concurrently, each on a snapshot. Writes
// that arrive during a commit share the next one, so 64 clients need hardly more fsyncs than one,
// and a single client never waits for others. A write returns once it is on disk.
//
// Each table is a bucket. The trail is another bucket. Expiry has no index: a sweep reads a part of
// each table, and reads also return records that have expired. Times are kept to the millisecond.
//
// If bbolt panics or faults over a damaged page, the call returns [ErrCorrupt] and the server does
// not crash. Pages have no checksums, so not all damage is noticed.
//
//	store, err := bolt.Open("oauth-server.db", bolt.Options{})
//	if errors.Is(err, bolt.ErrLocked) {
//		// a running server holds the file: stop it, or use its admin API
//	}
//	defer store.Close()
//	seen, err = store.Put(ctx, table, record, seen) // on disk, or nothing has happened
package bolt
