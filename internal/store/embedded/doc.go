// Package embedded keeps everything in one local file: the default store, for
// one process on one machine, with nothing else to install.
//
// The file is a bbolt database of mode 0600. Reads run side by side on a
// snapshot; writes that arrive while a commit is under way share the next one,
// so that 64 clients cost hardly more fsyncs than one, and a single client
// never waits for company. An answer is given only once its write is on disk.
//
// Codes, tokens, sessions and revocations lie by digest, that is, all over the
// file. They are written into a journal first, a few pages for any number of
// them, and are moved to their places a slice at a time by later commits.
//
// The package never judges expiry (the caller has the clock), never stores a
// code, token or cookie in clear (only digests come in), and never lets a
// damaged file crash the server: every access turns it into [ErrCorrupt].
//
//	store, err := embedded.Open("oauth-server.db", embedded.Options{})
//	if errors.Is(err, embedded.ErrLocked) {
//		// a running server holds the file: stop it, or use its admin API
//	}
//	defer store.Close()
//	err = store.RedeemCode(ctx, digest, &next) // on disk, or not at all
package embedded
