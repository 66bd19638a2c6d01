// Package mongo keeps everything in MongoDB, for any number of instances.
//
// It needs only single-document atomicity, unique _ids and majority write concern from the server,
// and neither transactions nor sessions. docs/deployment.md lists the required properties,
// and [Store.Verify] checks them on a server.
//
//   - A record is a document with a version and a random nonce. Every write depends on the state
//     that was read, so of any number of writers in one state one succeeds. The nonce also shows
//     whether a write without a reply took place.
//   - The insert of an entry of the trail is the moment at which its records change. The entry holds
//     the new records until they are written. All readers of the trail write them first.
//   - Counters are written by unordered bulks of upserts. The filter of each lets a write be
//     applied once, however often it arrives: most writes of a shared counter depend on the
//     writer's own sequence in the document, the others on its version and etag. See
//     [Store.Exchange]. A write is reported as applied only if the reply accounts for all writes of
//     its bulk.
//   - Documents that expire have an expire date. A TTL index removes them, by the server's clock.
//
// Reads go to the primary with majority read concern and writes are acknowledged by a majority,
// whatever the URI says. The package never puts the URI's password into an error, and returns
// errors of the driver only wrapped, because some of them cannot be hashed. Package migrations
// makes the layout.
//
//	store, err := mongo.Open(ctx, mongo.Options{URI: uri, Database: "oauth"})
//	if errors.Is(err, mongo.ErrUnreachable) {
//		// no server answers there
//	}
//	pending, err := store.PendingMigrations(ctx)
package mongo
