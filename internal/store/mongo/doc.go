// Package mongo keeps everything in MongoDB, for any number of instances.
//
// It needs nothing of the server but single-document atomicity, unique _ids
// and majority write concern: no transactions, no sessions, no change streams.
//
//   - A claim is one insert: the token that a code or refresh token buys is
//     stored under an _id made from its predecessor's digest, so of any number
//     of claims one succeeds, and claim and successor are durable together.
//   - A client carries a random etag that is rewritten on every change; the
//     revision of all clients is the sum of their etags, computed by the
//     server, so that it can neither lag behind a change nor run ahead of it.
//   - Whatever expires carries an expire date and is removed by a TTL index.
//
// Reads go to the primary with majority read concern, writes are acknowledged
// by a majority, whatever the URI says. The package never puts the URI's
// password into an error and never hands out an error of the driver that
// cannot be hashed. The layout is made by package migrations.
//
//	store, err := mongo.Open(ctx, mongo.Options{URI: uri, Database: "oauth"})
//	if errors.Is(err, mongo.ErrUnreachable) {
//		// nobody answers there
//	}
//	pending, err := store.PendingMigrations(ctx)
package mongo
