package mongo

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
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
	check.OK(t, err)
	as := func(password string) string {
		u, err := url.Parse(uri)
		check.OK(t, err)
		u.User, u.Path = url.UserPassword("me", password), "/"+database
		return u.String()
	}
	s, err := Open(t.Context(), Options{URI: as("right"), Database: database})
	check.OK(t, err)
	_ = s.Close()
	_, err = Open(t.Context(), Options{URI: as("wrong-one"), Database: database})
	if !errors.Is(err, ErrAuth) || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v", err)
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
	check.OK(t, err)
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
