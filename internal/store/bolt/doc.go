// Package bolt keeps everything in one local file: the default store, for one process on one
// machine, with nothing else to install.
//
// The file is a bbolt database of mode 0600. Reads run side by side on a snapshot. Writes that arrive
// while a commit is under way share the next one, so that 64 clients cost hardly more fsyncs than one,
// and a single client never waits for others. A write returns once it is on disk.
//
// Each table is a bucket, and the trail is another one. There is no index of what expires: a sweep reads a
// part of each table, and no read hides a record that has expired. Times are kept to the millisecond.
//
// When bbolt panics or faults over a damaged page, that is returned as [ErrCorrupt] and does not crash the
// server. Pages have no checksums, so not all damage is noticed.
//
//	store, err := bolt.Open("oauth-server.db", bolt.Options{})
//	if errors.Is(err, bolt.ErrLocked) {
//		// a running server holds the file: stop it, or use its admin API
//	}
//	defer store.Close()
//	seen, err = store.Put(ctx, table, record, seen) // on disk, or nothing has happened
package bolt
