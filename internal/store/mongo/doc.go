// Package mongo keeps everything in MongoDB, for any number of instances.
//
// It needs nothing of the server but single-document atomicity, unique _ids and majority write
// concern: no transactions and no sessions. Change streams are used where they are offered, to
// notice changes of policies at once. What is relied on in detail is a list in
// docs/operating-mongodb.md, which [Store.Verify] checks on a server.
//
//   - A claim is one insert: the token issued for a code or refresh token is stored under an _id
//     made from the digest of its predecessor, so of any number of claims one succeeds, and claim
//     and successor are durable together.
//   - A client carries a random etag that is rewritten on every change; the revision of all clients
//     is the sum of their etags, computed by the server, so that it can neither lag behind a change
//     nor run ahead of it.
//   - Counters are written by unordered bulks of upserts. The filter of each lets a write be
//     applied once, however often it arrives: most writes of a shared counter depend on the
//     writer's own sequence in the document, the others on its version and etag. See
//     [Store.Exchange]. A write is reported as applied only if the reply accounts for all of its
//     bulk.
//   - Documents that expire carry an expire date. A TTL index removes them, by the server's clock.
//
// Reads go to the primary with majority read concern, writes are acknowledged by a majority,
// whatever the URI says. The package never puts the URI's password into an error, and returns
// errors of the driver only wrapped, because some of them cannot be hashed. The layout is made by
// package migrations.
//
//	store, err := mongo.Open(ctx, mongo.Options{URI: uri, Database: "oauth"})
//	if errors.Is(err, mongo.ErrUnreachable) {
//		// no server answers there
//	}
//	pending, err := store.PendingMigrations(ctx)
package mongo
