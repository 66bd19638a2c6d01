package mongo

import (
	"context"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/store/storetest"
)

// target's locations are a URI and a database's name, one space between them.
var target = storetest.Target{
	Location: func(t *testing.T) string {
		t.Helper()
		uri, database := mongotest.Database(t)
		s, err := Open(t.Context(), Options{URI: uri, Database: database})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return uri + " " + database
	},
	Open: func(ctx context.Context, location string) (storetest.Backend, error) {
		uri, database, _ := strings.Cut(location, " ")
		s, err := Open(ctx, Options{URI: uri, Database: database})
		if err != nil {
			return nil, err
		}
		return ttlStore{s}, nil
	},
}

func TestMain(m *testing.M) {
	storetest.Child(target.Open)
	if os.Getenv("MONGODB_TEST_URI") == "" {
		os.Exit(m.Run()) // testcontainers keeps connections of its own until the end
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) { storetest.Run(t, target) }
