package migrations

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Migration is one numbered step.
type Migration struct {
	Number   int // 1, 2, 3…
	Name     string
	About    string
	Commands []Command
}

// Command is one database command of a migration. It may run twice.
type Command struct {
	About string
	Run   bson.D
	// Optional is set if the database works without the command on a server that does not implement
	// it: for validators, but not for TTL indexes (see doc.go).
	Optional bool
}

// String returns the command in the form that db.runCommand accepts.
func (c Command) String() string {
	text, err := bson.MarshalExtJSON(c.Run, false, false)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// String returns the number and name of the migration, as in "0001_layout".
func (m Migration) String() string { return fmt.Sprintf("%04d_%s", m.Number, m.Name) }

// Checksum returns the SHA-256 of the commands, hexadecimal.
func (m Migration) Checksum() string {
	sum := sha256.New()
	for _, c := range m.Commands {
		_, _ = fmt.Fprintln(sum, c) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// All returns the migrations of this release, in order. Released migrations never change: a new
// table or index is a new migration, which only adds.
func All() []Migration {
	first := Migration{Number: 1, Name: "layout", About: "The counters, the tables with their indexes, and the trail."}
	first.Commands = append(first.Commands, counters()...)
	for _, t := range tables {
		first.Commands = append(first.Commands, t.commands()...)
	}
	return []Migration{first}
}

// table is a store.Table: a collection of records, see internal/store/mongo/tables.go.
type table struct {
	name    string
	owner   bool // its records are looked up by owner
	changed bool // its records are looked up by time of change
}

// tables are the tables of the domain packages, by name. The trail needs only the index on its
// numbers.
var tables = []table{
	{name: "agreements", owner: true},
	{name: "bans", changed: true},
	{name: "clients"},
	{name: "grants", owner: true},
	{name: "instances"},
	{name: "keys"},
	{name: "known_addresses"},
	{name: "policies"},
	{name: "revocations"},
	{name: "secret_uses"},
	{name: "secrets"},
	{name: "sessions", owner: true},
	{name: "subjects"},
	{name: "users"},
}

// commands returns the commands that create the collection of a table.
func (t table) commands() []Command {
	indexes := bson.A{parse(`{"key": {"expire": 1}, "name": "expire", "expireAfterSeconds": 0}`)}
	if t.owner {
		indexes = append(indexes, parse(`{"key": {"owner": 1, "_id": 1}, "name": "owner"}`))
	}
	if t.changed {
		indexes = append(indexes, parse(`{"key": {"changed": 1}, "name": "changed"}`))
	}
	return []Command{
		{
			About: fmt.Sprintf("Create the indexes of the table %s; the first one removes expired records.", t.name),
			Run:   bson.D{{Key: "createIndexes", Value: t.name}, {Key: "indexes", Value: indexes}},
		},
		validate(t.name, "Reject documents that are not records.", `{
			"bsonType": "object",
			"required": ["_id", "version", "nonce", "changed"],
			"properties": {
				"_id": {"bsonType": "string"},
				"value": {"bsonType": "object"},
				"owner": {"bsonType": "string"},
				"expire": {"bsonType": "date"},
				"version": {"bsonType": "number"},
				"nonce": {"bsonType": "number"},
				"changed": {"bsonType": "date"},
				"gone": {"bsonType": "bool"}
			}
		}`),
	}
}

// counters returns the commands that create the collection of the shared counters.
func counters() []Command {
	return []Command{
		{
			About: "Remove a counter at its expire time: the end of its last frame, plus a window and some grace. " +
				"This only saves space; readers ignore dead frames.",
			Run: parse(`{"createIndexes": "ratelimits", "indexes": [{"key": {"expire": 1}, "name": "expire", "expireAfterSeconds": 0}]}`),
		},
		validate("ratelimits", "Reject counters that no instance could read: a negative count, a missing version, a frame that is not a number.", `{
			"bsonType": "object",
			"required": ["_id", "version", "etag", "expire", "requestCounters"],
			"properties": {
				"_id": {
					"bsonType": "object",
					"required": ["clientId", "username"],
					"properties": {"clientId": {"bsonType": "string"}, "username": {"bsonType": "string"}, "limit": {"bsonType": "string"}}
				},
				"version": {"bsonType": "long", "minimum": 1},
				"etag": {"bsonType": "long"},
				"expire": {"bsonType": "date"},
				"frame": {"bsonType": "long", "minimum": 1},
				"pruned": {"bsonType": "long"},
				"writers": {"bsonType": "object", "additionalProperties": {"bsonType": "long"}},
				"requestCounters": {"bsonType": "object", "additionalProperties": {"bsonType": "long", "minimum": 0}}
			}
		}`),
	}
}

// validate returns the command that gives a collection a validator.
func validate(collection, about, schema string) Command {
	return Command{About: about, Optional: true, Run: bson.D{
		{Key: "collMod", Value: collection},
		{Key: "validationLevel", Value: "strict"},
		{Key: "validationAction", Value: "error"},
		{Key: "validator", Value: bson.D{{Key: "$jsonSchema", Value: parse(schema)}}},
	}}
}

// parse returns the document of a JSON text in this file.
func parse(text string) (doc bson.D) {
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		panic(err)
	}
	return doc
}
