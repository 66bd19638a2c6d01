package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store/mongo/mongotest"
)

// entryOf changes one of three policies, and removes it in each fourth entry.
func entryOf(version int64) clientcfg.PolicyEntry {
	c := clientcfg.Change{Target: clientcfg.PolicyTarget(fmt.Sprint(version % 3)), Before: json.RawMessage("null"), After: json.RawMessage(fmt.Sprintf(`{"note":"%d"}`, version))}
	if version%4 == 0 {
		c.After = c.Before
	}
	return clientcfg.PolicyEntry{
		AuditEntry: clientcfg.AuditEntry{Version: version, ID: fmt.Sprint("id-", version), At: time.Now(), Target: c.Target},
		Changes:    []clientcfg.Change{c},
	}
}

func change(ctx context.Context, s *Store, version int64) error {
	return s.AppendPolicyEntry(ctx, entryOf(version))
}

// changeTo appends the entries up to a version.
func changeTo(t *testing.T, s *Store, last int64) {
	t.Helper()
	first, err := s.PolicyVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for version := first.Number + 1; version <= last; version++ {
		if err := change(t.Context(), s, version); err != nil {
			t.Fatal(err)
		}
	}
}

// isFoldOf checks that the state is what the entries up to a version come to.
func isFoldOf(t *testing.T, s *Store, version int64) {
	t.Helper()
	var want clientcfg.PolicyState
	for v := int64(1); v <= version; v++ {
		e := entryOf(v)
		if err := want.Fold(&e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.PolicyState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.ID == "" && !slices.Contains(trail(t, s), version) { // it was swept
		want.ID = ""
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// isFoldedTo checks the marker and, if all is folded, the documents.
func isFoldedTo(t *testing.T, s *Store, version int64) {
	t.Helper()
	folded, err := s.policiesFolded(t.Context())
	if err != nil || folded != version {
		t.Errorf("folded up to %d, want %d (%v)", folded, version, err)
	}
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
	proxy.Once("insert", mongotest.LoseReply)
	if err := change(t.Context(), s, 2); err != nil {
		t.Errorf("the reply was lost, and the store says %v", err)
	}
	proxy.Once("insert", mongotest.LoseRequest)
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
	isFoldOf(t, direct, 3)
}

// TestChangeThatArrivesLate: an insert that was held up changes nothing once another has its version.
func TestChangeThatArrivesLate(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	proxy.Once("insert", mongotest.Delay)
	late := entryOf(1)
	late.ID = "late"
	if err := s.AppendPolicyEntry(t.Context(), late); err == nil {
		t.Error("a change that has not arrived is acknowledged")
	}
	if err := change(t.Context(), direct, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := proxy.Deliver(); n != 1 || err != nil {
		t.Fatalf("%d delivered, %v", n, err)
	}
	isFoldOf(t, direct, 1)
}

// TestFoldIsInterrupted: at each of its writes. The state is right, and the next fold completes it.
func TestFoldIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, fault := range []mongotest.Fault{mongotest.LoseRequest, mongotest.LoseReply} {
		for step := range 2 { // the targets, the marker
			s, direct, proxy := throughProxy(t)
			changeTo(t, direct, 3)
			if err := direct.foldPolicies(t.Context()); err != nil {
				t.Fatal(err)
			}
			changeTo(t, direct, 10)
			updates := 0
			proxy.Decide(func(command string) mongotest.Fault {
				if command == "update" {
					if updates++; updates == step+1 {
						return fault
					}
				}
				return mongotest.Pass
			})
			if err := s.foldPolicies(t.Context()); err == nil && fault == mongotest.LoseRequest {
				t.Errorf("fault %d at step %d: no error", fault, step)
			}
			isFoldOf(t, direct, 10)
			if err := s.foldPolicies(t.Context()); err != nil {
				t.Error(err)
			}
			isFoldedTo(t, direct, 10)
			isFoldOf(t, direct, 10)
		}
	}
}

// TestFoldThatIsLate: targets that were held up change nothing that is newer, nor bring back what was
// removed since.
func TestFoldThatIsLate(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	changeTo(t, direct, 3) // of the targets 1, 2 and 0
	proxy.Once("update", mongotest.Delay)
	if err := s.foldPolicies(t.Context()); err == nil {
		t.Error("a fold that has not arrived is acknowledged")
	}
	changeTo(t, direct, 5) // target 1 is removed by 4, target 2 changed by 5
	if err := direct.foldPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := proxy.Deliver(); n != 1 || err != nil {
		t.Fatalf("%d delivered, %v", n, err)
	}
	isFoldedTo(t, direct, 5)
	isFoldOf(t, direct, 5)
}

// TestFoldNowAndThen: changes fold, and a reader that finds many entries to do, too.
func TestFoldNowAndThen(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	changeTo(t, direct, foldEvery-1)
	isFoldedTo(t, direct, 0)
	changeTo(t, direct, foldEvery+1)
	isFoldedTo(t, direct, foldEvery)
	proxy.Decide(func(command string) mongotest.Fault {
		if command == "update" {
			return mongotest.LoseRequest
		}
		return mongotest.Pass
	})
	var folds []error
	s.ObserveFolds(func(ctx context.Context) (context.Context, func(error)) {
		return ctx, func(err error) { folds = append(folds, err) }
	})
	changeTo(t, s, 2*foldEvery+1) // the fold fails, the change does not
	if len(folds) != 1 || folds[0] == nil {
		t.Errorf("the folds ended with %v, want one failure", folds)
	}
	isFoldedTo(t, direct, foldEvery)
	isFoldOf(t, direct, 2*foldEvery+1)
	isFoldedTo(t, direct, 2*foldEvery+1)
}

// TestSweepKeepsWhatIsNotFolded: where nothing can be folded, nothing is swept. What was removed leaves
// the fold with the last entry of its time.
func TestSweepKeepsWhatIsNotFolded(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	changeTo(t, direct, 10)
	later := time.Now().Add(time.Hour)
	proxy.Alter(mongotest.Refuses("update", 13, "Unauthorized", "not authorized"))
	if n, err := s.SweepAudit(t.Context(), later, later); err == nil || n != 0 {
		t.Errorf("%d entries were swept, %v", n, err)
	}
	proxy.Alter(mongotest.Alteration{})
	removed := func() int64 {
		n, err := s.policies.CountDocuments(t.Context(), bson.D{{Key: "value", Value: "null"}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n, err := s.SweepAudit(t.Context(), time.Now().Add(-time.Hour), later); err != nil || n != 0 || removed() != 1 {
		t.Errorf("%d entries were swept, %v; %d removed targets are there, want that of entry 8", n, err, removed())
	}
	isFoldOf(t, direct, 10)
	if n, err := s.SweepAudit(t.Context(), later, later); err != nil || n != 10 || removed() != 0 {
		t.Errorf("%d entries were swept, %v; %d removed targets are there", n, err, removed())
	}
	changeTo(t, direct, 11)
	isFoldOf(t, direct, 11)
}

// TestEntriesThatCannotBeRead: those before are, and nothing is folded beyond.
func TestEntriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, s, _ := throughProxy(t)
	changeTo(t, s, 5)
	setFields(t, s, "audit", int64(4), bson.D{{Key: "entry", Value: `{"version":4,"until":"tomorrow"}`}})
	entries, err := s.PolicyEntries(t.Context(), 1)
	check.OK(t, err)
	if len(entries) != 5 || !errors.Is(entries[3].Err, clientcfg.ErrUnreadable) || entries[3].ID == "" || entries[4].Err != nil {
		t.Errorf("the entries are %+v", entries)
	}
	state, err := s.PolicyState(t.Context())
	check.OK(t, err)
	if state.Version != 3 || !errors.Is(state.Stopped, clientcfg.ErrUnreadable) {
		t.Errorf("the state is that of version %d: %v", state.Version, state.Stopped)
	}
	if err := s.foldPolicies(t.Context()); err != nil && !errors.Is(err, clientcfg.ErrUnreadable) {
		t.Error(err)
	}
	isFoldedTo(t, s, 3)
	if _, err := s.audit.DeleteOne(t.Context(), byID(4)); err != nil {
		t.Fatal(err)
	}
	state, err = s.PolicyState(t.Context())
	check.OK(t, err)
	if state.Version != 3 || !errors.Is(state.Stopped, clientcfg.ErrPolicyGap) {
		t.Errorf("without entry 4, the state is that of version %d: %v", state.Version, state.Stopped)
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

// TestSweepLeavesTheNewest: the clock of one writer was ahead, so that an older entry is younger. The
// version never goes back, and the next one follows.
func TestSweepLeavesTheNewest(t *testing.T) {
	_, s, _ := throughProxy(t)
	base := time.Now().Add(-48 * time.Hour)
	for version := int64(1); version <= 5; version++ {
		e := entryOf(version)
		if e.At = base; version == 4 {
			e.At = base.Add(2 * time.Minute)
		}
		check.OK(t, s.AppendPolicyEntry(t.Context(), e))
	}
	for _, sweep := range []struct {
		before  time.Duration
		removed int
	}{{time.Minute, 3}, {time.Hour, 2}} {
		removed, err := s.SweepAudit(t.Context(), base.Add(sweep.before), time.Now())
		check.OK(t, err)
		check.Equal(t, "entries removed", removed, sweep.removed)
		version, err := s.PolicyVersion(t.Context())
		check.OK(t, err)
		check.Equal(t, "version", version.Number, 5)
		isFoldOf(t, s, 5)
	}
	if err := change(t.Context(), s, 5); !errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("another version 5: %v", err)
	}
	changeTo(t, s, 6)
	isFoldOf(t, s, 6)
}

// TestNewestSweptByAnEarlierRelease, which swept by time alone: a version that was folded is not given
// twice.
func TestNewestSweptByAnEarlierRelease(t *testing.T) {
	_, s, _ := throughProxy(t)
	changeTo(t, s, 5)
	check.OK(t, s.foldPolicies(t.Context()))
	_, err := s.audit.DeleteOne(t.Context(), byID(5))
	check.OK(t, err)
	if err := change(t.Context(), s, 5); !errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("another version 5: %v", err)
	}
	check.OK(t, change(t.Context(), s, 6))
	isFoldOf(t, s, 6)
}

// TestSweptWhileTheStateIsRead: everything is folded and swept between two reads.
func TestSweptWhileTheStateIsRead(t *testing.T) {
	for at := 1; at <= 4; at++ {
		s, direct, proxy := throughProxy(t)
		changeTo(t, direct, 5)
		finds := 0
		proxy.Decide(func(command string) mongotest.Fault {
			if command != "find" {
				return mongotest.Pass
			}
			if finds++; finds == at {
				_, err := direct.SweepAudit(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour))
				check.OK(t, err)
			}
			return mongotest.Pass
		})
		isFoldOf(t, s, 5)
	}
}

// TestMarkerIsMadeAgain after a restore of the trail without the fold.
func TestMarkerIsMadeAgain(t *testing.T) {
	_, s, _ := throughProxy(t)
	changeTo(t, s, 40)
	_, err := s.policies.DeleteMany(t.Context(), bson.D{})
	check.OK(t, err)
	changeTo(t, s, 2*entriesAtOnce+1)
	isFoldOf(t, s, 2*entriesAtOnce+1)
	folded, err := s.policiesFolded(t.Context())
	check.OK(t, err)
	check.Equal(t, "folded", folded, 2*entriesAtOnce)
}
