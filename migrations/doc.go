// Package migrations brings a MongoDB database to the layout that this release needs, in numbered
// steps, and reports which of them have been applied.
//
// A migration is a list of database commands in layout.go, each with a sentence about its effect. Every
// command may run twice, so many instances may migrate at once, and again after a crash. The collection
// "migrations" records the applied migrations. A released migration never changes: a new need is a new
// migration.
//
// Servers that only speak MongoDB's protocol may lack validators: those commands are optional, and
// a missing feature is reported once. TTL indexes are not optional: nothing but the
// server's monitor deletes expired counters, codes, tokens and sessions, so without one the
// collections grow until the disk is full.
//
// The package never removes data. It needs the rights to create collections and indexes and to run
// collMod (the role dbAdmin, or readWrite on a server without collMod).
//
//	pending, err := migrations.Pending(ctx, db) // before serving
//	report, err := migrations.Up(ctx, db)       // oauth-server migrate up
package migrations
