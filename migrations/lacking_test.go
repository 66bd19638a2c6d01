package migrations

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/store/mongo/mongotest"
)

// TestUpWithoutValidators: a server without validators is migrated, by whatever error it refuses
// them, and one line names what it lacks.
func TestUpWithoutValidators(t *testing.T) {
	all := All()
	for _, tt := range []struct {
		name   string
		server mongotest.Alteration
		says   string
	}{
		{"a keyword is unknown", mongotest.Refuses("collMod", 9, "FailedToParse", "Unknown $jsonSchema keyword: additionalProperties"), "keyword: additionalProperties"},
		{"a keyword is unknown, by code", mongotest.Refuses("collMod", 9, "", "keyword"), "FailedToParse, code 9"},
		{"a keyword is unknown, by name", mongotest.Refuses("collMod", 0, "FailedToParse", "keyword"), "FailedToParse, code 9"},
		{"no validators", mongotest.Refuses("collMod", 115, "CommandNotSupported", "validator is\nnot supported"), "validator is not supported"},
		{"no validators, by code", mongotest.Refuses("collMod", 115, "", "no"), "CommandNotSupported, code 115"},
		{"no validators, by name", mongotest.Refuses("collMod", 0, "CommandNotSupported", "no"), "CommandNotSupported, code 115"},
		{"no collMod", mongotest.Refuses("collMod", 59, "CommandNotFound", "no such command: 'collMod'"), "no such command"},
		{"no collMod, by code", mongotest.Refuses("collMod", 59, "", "no"), "CommandNotFound, code 59"},
		{"no collMod, by name", mongotest.Refuses("collMod", 0, "CommandNotFound", "no"), "CommandNotFound, code 59"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, proxy := behindProxy(t)
			proxy.Alter(tt.server)
			report, err := Up(t.Context(), db)
			if err != nil || names(report.Applied) != names(all) {
				t.Fatalf("%+v, %v", report, err)
			}
			if len(report.Lacking) != 1 || !strings.Contains(report.Lacking[0], tt.says) || strings.Contains(report.Lacking[0], "\n") {
				t.Errorf("it says %q, want one line with %q", report.Lacking, tt.says)
			}
			if report, err = Up(t.Context(), db); err != nil || len(report.Applied)+len(report.Lacking) > 0 {
				t.Errorf("up once more: %+v, %v", report, err)
			}
		})
	}
}

// TestUpStops: everything else that a server refuses stops the migration at the command, and is
// tried again by the next.
func TestUpStops(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server mongotest.Alteration
		says   string
	}{
		{"no right to collMod", mongotest.Refuses("collMod", 13, "Unauthorized", "not authorized"), "0001_layout: commands[1]"},
		{"a bad value in collMod", mongotest.Refuses("collMod", 2, "BadValue", "bad"), "0001_layout: commands[1]"},
		{"another option of collMod", mongotest.Refuses("collMod", 72, "InvalidOptions", "bad"), "0001_layout: commands[1]"},
		{"an error without a code", mongotest.Refuses("collMod", 0, "", "bad"), "0001_layout: commands[1]"},
		{"no TTL indexes", mongotest.Refuses("createIndexes", 115, "CommandNotSupported", "no TTL"), "0001_layout: commands[0]"},
		{"no indexes", mongotest.Refuses("createIndexes", 59, "CommandNotFound", "no"), "0001_layout: commands[0]"},
		{"a TTL index that cannot be", mongotest.Refuses("createIndexes", 67, "CannotCreateIndex", "no"), "0001_layout: commands[0]"},
		{"an index that cannot be built", mongotest.Refuses("createIndexes", 11000, "DuplicateKey", "Index build failed: E11000 duplicate key"), "0001_layout: commands[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, proxy := behindProxy(t)
			proxy.Alter(tt.server)
			report, err := Up(t.Context(), db)
			if err == nil || !strings.Contains(err.Error(), tt.says) || len(report.Applied)+len(report.Lacking) > 0 {
				t.Errorf("%+v, %v, want %q", report, err, tt.says)
			}
			if n, err := db.Collection(collection).CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
				t.Errorf("%d migrations are recorded, %v", n, err)
			}
			proxy.Alter(mongotest.Alteration{})
			if _, err := Up(t.Context(), db); err != nil {
				t.Errorf("once it is granted: %v", err)
			}
		})
	}
}

// behindProxy is a fresh database on a server behind a proxy.
func behindProxy(t *testing.T) (*mongo.Database, *mongotest.Proxy) {
	t.Helper()
	uri, name := mongotest.Database(t)
	proxy := mongotest.NewProxy(t, uri)
	return mongotest.Connect(t, proxy.URI).Database(name), proxy
}
