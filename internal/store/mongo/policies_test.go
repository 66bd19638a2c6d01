package mongo

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store/mongo/mongotest"
)

func change(ctx context.Context, s *Store, version int64) error {
	entry := clientcfg.AuditEntry{Version: version, At: time.Now(), Target: "settings"}
	return s.ReplacePolicySet(ctx, clientcfg.PolicySet{Version: version}, entry)
}

func trail(t *testing.T, s *Store) (versions []int64) {
	t.Helper()
	entries, err := s.Audit(t.Context(), clientcfg.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	return versions
}

// TestChangeThroughFaults: when the reply to a change gets lost, the store finds out whether it is
// stored.
func TestChangeThroughFaults(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	if err := change(t.Context(), direct, 1); err != nil {
		t.Fatal(err)
	}
	proxy.Once("update", mongotest.LoseReply)
	if err := change(t.Context(), s, 2); err != nil {
		t.Errorf("the reply was lost, and the store says %v", err)
	}
	proxy.Once("update", mongotest.LoseRequest)
	if err := change(t.Context(), s, 3); err == nil || errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("the request was lost, and the store says %v", err)
	}
	if err := change(t.Context(), s, 2); !errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("a change to an old version: %v", err)
	}
	if err := change(t.Context(), s, 3); err != nil {
		t.Errorf("sent again: %v", err)
	}
	if got := trail(t, direct); len(got) != 3 {
		t.Errorf("the trail is %v", got)
	}
}

// TestTrailAfterCrash: the process died between the change and the trail. The entry is appended
// when the trail is read, and before the next change.
func TestTrailAfterCrash(t *testing.T) {
	t.Parallel()
	_, s, _ := throughProxy(t)
	for version := int64(1); version <= 3; version++ {
		if err := change(t.Context(), s, version); err != nil {
			t.Fatal(err)
		}
		if _, err := s.audit.DeleteOne(t.Context(), byID(version)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.audit.CountDocuments(t.Context(), bson.D{}); err != nil || n != 2 {
		t.Errorf("%d entries before the last is appended, %v", n, err)
	}
	if got := trail(t, s); len(got) != 3 {
		t.Errorf("the trail is %v", got)
	}
}

// TestWatchPolicies: a change stream reports a change; a server without change streams is
// recognised at once, so that polling can do without.
func TestWatchPolicies(t *testing.T) {
	_, s, _ := throughProxy(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := 0
	err := s.WatchPolicies(ctx, func() {
		if calls++; calls > 1 {
			cancel()
			return
		}
		if err := change(t.Context(), s, 1); err != nil {
			t.Error(err)
		}
	})
	if noWatch := errors.Is(err, clientcfg.ErrNoWatch); noWatch != (calls == 0) || !noWatch && calls < 2 {
		t.Errorf("called %d times, then %v", calls, err)
	}
}
