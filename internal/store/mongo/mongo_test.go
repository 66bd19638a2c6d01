package mongo

import (
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// location migrates an empty database.
func location(t *testing.T) string {
	t.Helper()
	uri, database := mongotest.Database(t)
	s, err := Open(t.Context(), Options{URI: uri, Database: database})
	check.OK(t, err)
	defer func() { _ = s.Close() }()
	_, err = s.Migrate(t.Context())
	check.OK(t, err)
	return uri + " " + database
}

// putDocument stores a document of a counter unchanged and bypasses the validator.
func putDocument(t *testing.T, s *Store, doc bson.D) {
	t.Helper()
	var id any
	for _, e := range doc {
		if e.Key == "_id" {
			id = e.Value
		}
	}
	anything := options.Replace().SetUpsert(true).SetBypassDocumentValidation(true)
	_, err := s.counters.ReplaceOne(t.Context(), byID(id), doc, anything)
	check.OK(t, err)
}

func TestMain(m *testing.M) {
	if os.Getenv("MONGODB_TEST_URI") == "" {
		os.Exit(m.Run()) // testcontainers keeps its own connections open until the end
	}
	goleak.VerifyTestMain(m)
}
