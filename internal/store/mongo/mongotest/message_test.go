package mongotest

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
)

// TestGreetingsHaveAWireVersion: without a wire version in the greeting, the driver treats a server
// as too old.
func TestGreetingsHaveAWireVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hello", "isMaster", "ismaster"} {
		answer := withWireVersion(bson.D{{Key: name, Value: 1}}, bson.D{{Key: "ok", Value: 1.0}})
		check.Equal(t, name, Get[int](answer, "maxWireVersion"), 21)
	}
	own := bson.D{{Key: "maxWireVersion", Value: 8}}
	check.Equal(t, "its own", withWireVersion(bson.D{{Key: "hello", Value: 1}}, own), own)
	ping := bson.D{{Key: "ok", Value: 1.0}}
	check.Equal(t, "no greeting", withWireVersion(bson.D{{Key: "ping", Value: 1}}, ping), ping)
}
