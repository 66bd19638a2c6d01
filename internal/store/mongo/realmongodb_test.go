package mongo

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// TestAuthenticationRealMongoDB: the right password opens, and a wrong one is distinguished from an
// unreachable server.
func TestAuthenticationRealMongoDB(t *testing.T) {
	uri := mongotest.Real(t, "authentication")
	_, database := mongotest.Database(t)
	admin := mongotest.Connect(t, uri).Database(database)
	err := admin.RunCommand(t.Context(), bson.D{
		{Key: "createUser", Value: "me"},
		{Key: "pwd", Value: "right"},
		{Key: "roles", Value: bson.A{"readWrite"}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	as := func(password string) string {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.Path = url.UserPassword("me", password), "/"+database
		return u.String()
	}
	s, err := Open(t.Context(), Options{URI: as("right"), Database: database})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_, err = Open(t.Context(), Options{URI: as("wrong-one"), Database: database})
	if !errors.Is(err, ErrAuth) || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v", err)
	}
}

// TestMajorityRealMongoDB: whatever the URI says, writes wait for a majority and reads see only
// data that a majority has.
func TestMajorityRealMongoDB(t *testing.T) {
	uri := mongotest.Real(t, "read and write concerns with an effect")
	_, database := mongotest.Database(t)
	var mu sync.Mutex
	var writes, reads []string
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		switch e.CommandName {
		case "insert", "update", "delete":
			writes = append(writes, e.Command.Lookup("writeConcern", "w").String())
		case "find", "aggregate":
			reads = append(reads, e.Command.Lookup("readConcern", "level").String())
		}
	}}
	client, err := mongo.Connect(clientOptions(uri + "&w=1&readConcernLevel=local&readPreference=nearest").SetMonitor(monitor))
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(client, database)
	t.Cleanup(func() { _ = s.Close() })
	ctx, things := t.Context(), store.Table{Name: "things"}
	seen, err := s.Put(ctx, things, store.Record{Key: "k", Value: []byte("{}")}, store.Seen{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, things, &seen, "k"); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(ctx, things, func(store.Record) error { return nil }, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exchange(ctx, []syncer.Item{{ID: hotID, Write: aWrite("me", 1, 1), Read: true}}); err != nil {
		t.Fatal(err)
	}
	for _, concern := range append(writes, reads...) {
		if concern != `"majority"` {
			t.Errorf("writes %v, reads %v", writes, reads)
		}
	}
}

// TestRetryableWritesRealMongoDB: if the connection of a claim breaks, the driver retries the claim
// and it still succeeds only once.
func TestRetryableWritesRealMongoDB(t *testing.T) {
	uri := mongotest.Real(t, "retryable writes")
	_, database := mongotest.Database(t)
	client := mongotest.Connect(t, uri)
	s := newStore(client, database)
	ctx, things, record := t.Context(), store.Table{Name: "things"}, store.Record{Key: "k", Value: []byte("{}")}
	seen, err := s.Put(ctx, things, record, store.Seen{})
	if err != nil {
		t.Fatal(err)
	}
	err = client.Database("admin").RunCommand(ctx, bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"update"}}, {Key: "closeConnection", Value: true}}},
	}, options.RunCmd()).Err()
	if err != nil {
		t.Skipf("the server does not allow fail points (--setParameter enableTestCommands=1): %v", err)
	}
	if _, err := s.Put(ctx, things, record, seen); err != nil {
		t.Errorf("put over a broken connection: %v", err)
	}
	if _, err := s.Put(ctx, things, record, seen); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put again: %v", err)
	}
}
