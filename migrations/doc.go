// Package migrations brings a MongoDB database to the layout that this release
// needs, step by numbered step, and tells whether it is there.
//
// A migration is a file of database commands beside this one, embedded in the
// binary: 0001_ratelimits.json and so on, each command with a word on what it
// does. Every command is one that may run twice, so migrations may be started
// by many instances at once, and again after a crash; what has been applied is
// recorded in the collection "migrations". A file that was released is never
// changed: a new need is a new file.
//
// Servers that only speak MongoDB's protocol may lack validators: those commands
// are optional, and what a server refuses of them is reported once. TTL indexes
// are not: nothing but the server's monitor deletes expired counters, codes,
// tokens and sessions, so without one the collections grow until the disk is full.
//
// The package never removes data and never needs more than the right to create
// collections and indexes and to run collMod (the role dbAdmin, or readWrite
// where collMod is not to be had).
//
//	pending, err := migrations.Pending(ctx, db) // before serving
//	report, err := migrations.Up(ctx, db)       // oauth-server migrate up
package migrations
