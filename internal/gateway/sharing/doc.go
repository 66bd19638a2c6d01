// Package sharing leads from refresh tokens to users at every instance of a gateway, and after a restart. What an
// instance learns from an answer is written to the store soon after, and a refresh token that its memory (package
// subject) does not have is looked up there once.
//
//   - [Subjects.Put] never waits: entries wait in a bounded queue, which [Subjects.Flush] writes in batches.
//   - [Subjects.Find] is the only read. It waits [ReadTimeout] at most, and what it asks of the store is bounded: in
//     all, and by the reads of one source that find nothing, so that guessed tokens cost the store little. Without an
//     answer the user is unknown, as of a token that was never seen.
//
// A refresh token is stored as a hash of it and its client, see [KeyOf]: another client finds nothing, and no token can
// be read from the store. The user is stored as it is.
//
//	shared := sharing.New(sharing.Options{Store: store, Memory: memory})
//	shared.Put(now, digest, "shop", "u1", time.Time{}) // with the answer that has the token, at one instance
//	_ = shared.Flush(ctx)                              // a moment later
//	user, ok := shared.Find(ctx, now, digest, "shop", "192.0.2.1") // "u1", true at another one
package sharing
