// Package embedded keeps everything in one local file: the default store, for one process on one
// machine, with nothing else to install.
//
// The file is a bbolt database of mode 0600. Reads run side by side on a snapshot. Writes that arrive
// while a commit is under way share the next one, so that 64 clients cost hardly more fsyncs than one,
// and a single client never waits for others. A write returns once it is on disk.
//
// Codes, families, sessions and revocations are stored under their digests, and an index of their expiry
// shows the sweep which are due; the entry of a family that was refreshed since may be early. Times are kept to the millisecond.
//
// The package never judges expiry (the caller has the clock) and never stores a code, token or cookie
// in clear (only digests come in). When bbolt panics or faults over a damaged page, that is returned as
// [ErrCorrupt] and does not crash the server. Pages have no checksums, so not all damage is noticed.
//
//	store, err := embedded.Open("oauth-server.db", embedded.Options{})
//	if errors.Is(err, embedded.ErrLocked) {
//		// a running server holds the file: stop it, or use its admin API
//	}
//	defer store.Close()
//	err = store.RedeemCode(ctx, digest, &family) // on disk, or nothing has happened
package embedded
