// Package sharing maps refresh tokens to users across all instances of a gateway and across
// restarts. Each instance writes the mappings that it learns from answers to the store shortly
// afterwards. If its own memory (package subject) does not have a refresh token, it looks the token
// up in the store once.
//
//   - [Subjects.Put] never blocks. It adds an entry to a bounded queue, which [Subjects.Flush]
//     writes in batches.
//   - [Subjects.Find] is the only read. It waits at most [ReadTimeout]. Its reads are bounded in
//     total, and by the reads of each source that find nothing, so guessed tokens cost the store
//     little. If the store does not answer, the user is unknown, as for a new token.
//
// The store key of a refresh token is a hash of the token and its client, see [KeyOf]. Another
// client finds nothing, and the store reveals no token. The user is stored in plain text.
//
//	shared := sharing.New(sharing.Options{Store: store, Memory: memory})
//	shared.Put(now, digest, "shop", "u1", time.Time{}) // with the answer that has the token, at one instance
//	_ = shared.Flush(ctx)                              // a moment later
//	user, ok := shared.Find(ctx, now, digest, "shop", "192.0.2.1") // "u1", true at another one
package sharing
