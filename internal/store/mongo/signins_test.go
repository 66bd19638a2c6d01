package mongo

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestDamagedFamily: it takes only itself out of the list of a user's.
func TestDamagedFamily(t *testing.T) {
	_, s, _ := throughProxy(t)
	for _, name := range []string{"a", "bad", "c"} {
		check.OK(t, s.CreateFamily(t.Context(), grants.Family{
			Authorization: grants.Authorization{Username: "ada", ClientID: "shop", Family: name}, Digest: secret.DigestOf(name), Generation: 1,
		}))
	}
	setFields(t, s, "grants", grantID(claimID, secret.DigestOf("bad")), bson.D{{Key: "expiresAt", Value: "tomorrow"}})
	found := map[string]bool{}
	check.OK(t, s.FamiliesOf(t.Context(), "ada", func(some []grants.Family) error {
		for _, f := range some {
			found[f.Family] = true
		}
		return nil
	}))
	check.Equal(t, "families", found, map[string]bool{"a": true, "c": true})
	if _, err := s.Family(t.Context(), secret.DigestOf("bad")); err == nil || errors.Is(err, grants.ErrNotFound) {
		t.Errorf("the damaged one: %v", err)
	}
}

// TestTimesBeyondJSON: a user with one takes only itself out of a list that is shown as JSON.
func TestTimesBeyondJSON(t *testing.T) {
	_, s, _ := throughProxy(t)
	for _, name := range []string{"bad", "good"} {
		check.OK(t, s.CreateUser(t.Context(), grants.User{Name: name, PasswordHash: "$argon2id$", CreatedAt: time.Now()}))
	}
	far := bson.D{{Key: "createdAt", Value: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}}
	setFields(t, s, "users", "bad", far)
	users, err := s.Users(t.Context())
	check.OK(t, err)
	check.ErrorSays(t, users[0].Err, "a time in the year 10000")
	check.OK(t, users[1].Err)
}
