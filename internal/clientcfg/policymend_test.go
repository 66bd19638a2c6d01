package clientcfg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
)

// TestPolicySourceIsMendedByALaterChange: whatever cannot be used of an entry, an instance that runs goes
// on as soon as a later one has replaced it.
func TestPolicySourceIsMendedByALaterChange(t *testing.T) {
	for _, tt := range []struct {
		name     string
		bad, end clientcfg.Change
	}{
		{"a target of a newer release", stored("users/ada", "{}"), stored("users/ada", "null")},
		{"a name twice", stored("policies/shop", `{"note":"a","note":"b"}`), shopHas(4)},
		{"a field of a newer release", stored("policies/shop", `{"burst":5}`), shopHas(4)},
		{"a wrong type", stored("policies/shop", `{"user":7}`), shopHas(4)},
		{"a limit that cannot be", broken(), shopHas(4)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &policyStore{}
			store.put(shopHas(3))
			s := newPolicySource(t, store)
			store.put(tt.bad)
			for range 3 {
				check.Equal(t, "refreshed", s.Refresh(t.Context()) == nil, false)
			}
			check.Equal(t, "reads of the whole state", store.loads, 2)
			store.put(tt.end)
			store.put(shopHas(4))
			requireError(t, s.Refresh(t.Context()), "")
			check.Equal(t, "limit", userLimit(s, "shop"), 4)
			check.Equal(t, "version", s.Snapshot().Version(), 4)
		})
	}
}

// TestPolicySourcePassesAFoldedEntry: an entry that cannot be read is not needed once it is folded.
func TestPolicySourcePassesAFoldedEntry(t *testing.T) {
	store := &unreadableFrom{from: 3}
	store.put(shopHas(3))
	s := newPolicySource(t, store)
	for i := range 4 {
		store.put(shopHas(4 + i))
	}
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "limit", userLimit(s, "shop"), 7)
}

// TestPolicySourceFollowsAMendedEntry: one that could not be read, and can be again, is followed at once,
// and the whole state is not read until then.
func TestPolicySourceFollowsAMendedEntry(t *testing.T) {
	store := &unreadableFrom{from: 1}
	s := newPolicySource(t, store)
	store.put(shopHas(5))
	store.spoiled = clientcfg.ErrUnreadable // it is not folded
	for range 5 {
		requireError(t, s.Refresh(t.Context()), "cannot be read")
	}
	check.Equal(t, "reads of the whole state", store.loads, 2)
	store.from, store.spoiled = 9, nil
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "limit", userLimit(s, "shop"), 5)
}

// unreadableFrom has entries that cannot be read, from a version on, and are folded.
type unreadableFrom struct {
	policyStore
	from int64
}

func (u *unreadableFrom) PolicyEntries(ctx context.Context, from int64) ([]clientcfg.PolicyEntry, error) {
	entries, err := u.policyStore.PolicyEntries(ctx, from)
	for i := range entries {
		if e := &entries[i]; e.Version >= u.from {
			*e = clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: e.Version, ID: e.ID, Err: clientcfg.ErrUnreadable}}
		}
	}
	return entries, err
}

// behind is a store whose trail has lost the newest entry, which is folded.
type behind struct{ policyStore }

func (b *behind) PolicyVersion(ctx context.Context) (clientcfg.PolicyVersion, error) {
	newest, err := b.policyStore.PolicyVersion(ctx)
	newest.Number = b.trail[len(b.trail)-1].Version
	return newest, err
}

// TestPolicySourceWithoutTheNewestEntry: what is folded is in force, and not read again each second.
func TestPolicySourceWithoutTheNewestEntry(t *testing.T) {
	now, adopted := time.Unix(1e9, 0), 0
	store := &behind{}
	for i := range 5 {
		store.put(shopHas(1 + i))
	}
	store.trail = store.trail[:4]
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
		Base: fileSettings(), Now: func() time.Time { return now }, Adopted: func(_, _ *clientcfg.PolicySnapshot) { adopted++ },
	})
	requireError(t, err, "")
	for range 29 {
		now = now.Add(time.Second)
		requireError(t, s.Refresh(t.Context()), "")
	}
	check.Equal(t, "reads of the whole state", store.loads, 2)
	check.Equal(t, "adopted", adopted, 1)
	_, err = s.Change(t.Context(), limitShop(9))
	requireError(t, err, "")
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "limit", userLimit(s, "shop"), 9)
	check.Equal(t, "version", s.Snapshot().Version(), 6)
}

// TestPolicySourceReadsEachEntryOnce: a start with many values that cannot be used reads the trail once.
func TestPolicySourceReadsEachEntryOnce(t *testing.T) {
	const n = 300
	store := &policyStore{}
	for i := range n {
		var changes []clientcfg.Change
		for j := range 3 {
			c := stored(fmt.Sprintf("policies/c%d-%d", i, j), `{"burst":5}`)
			c.Before = json.RawMessage(`{"user":[{"requests":6}]}`)
			changes = append(changes, c)
		}
		store.put(changes...)
	}
	s := newPolicySource(t, store)
	check.Equal(t, "reads of entries", store.reads, n/3) // three at once
	check.Equal(t, "limit", userLimit(s, "c7-2"), 6)
	check.Equal(t, "left out", s.Status().LeftOut, 3*n)
	if text := s.Status().Err.Error(); len(text) > 2000 || !strings.Contains(text, "895 more targets") {
		t.Errorf("the error has %d bytes: %s", len(text), text)
	}
}

// TestPolicySourceStartsBeforeAnEntry: the fold is ahead of an entry that cannot be read. A target that
// was changed afterwards has the value before the first change that can be read.
func TestPolicySourceStartsBeforeAnEntry(t *testing.T) {
	store := &policyStore{}
	store.put(shopHas(1), stored("policies/web", `{"user":[{"requests":1}]}`), stored("policies/new", "null"))
	store.put(stored("policies/web", `{"user":[{"requests":2}]}`)) // is not read
	for i := range 4 {
		c := shopHas(3 + i)
		c.Before = shopHas(2 + i).After
		if i == 0 {
			c.Before = shopHas(1).After
		}
		store.put(c, stored("policies/new", `{"user":[{"requests":3}]}`))
	}
	store.trail = store.trail[2:]
	store.state.Version, store.state.ID, store.spoiled = 1, "id-1", clientcfg.ErrUnreadable
	s := newPolicySource(t, store)
	for client, want := range map[string]int64{"shop": 1, "web": 100, "new": 100} { // 100 is that of the file
		check.Equal(t, "limit of "+client, userLimit(s, client), want)
	}
	check.Equal(t, "version", s.Snapshot().Version(), 1)
	check.Equal(t, "left out", s.Status().LeftOut, 3)
	requireError(t, s.Status().Err, "policies/new is that of version 6")
}

// TestPolicySourceStartsWithWhatFits: values that can be used one by one, and not together.
func TestPolicySourceStartsWithWhatFits(t *testing.T) {
	store := &policyStore{}
	for i := range clientcfg.MaxCandidates + 2 {
		store.put(stored(fmt.Sprint("candidates/c", i), `{"user":[{"requests":6}],"since":"2026-01-01T00:00:00Z"}`))
	}
	s := newPolicySource(t, store)
	set := s.Snapshot().Set()
	_, first := set.Candidates.Get("c0")
	_, last := set.Candidates.Get(fmt.Sprint("c", clientcfg.MaxCandidates))
	check.Equal(t, "candidates", set.Candidates.Len(), clientcfg.MaxCandidates)
	check.Equal(t, "the first is there", first, true)
	check.Equal(t, "the one too many is there", last, false)
	check.Equal(t, "left out", s.Status().LeftOut, 2)
	check.Equal(t, "refused", s.Status().Refused(), true)
	requireError(t, s.Status().Err, "1002 candidates are more than 1000")
	_, err := s.Change(t.Context(), limitShop(9))
	if refused := new(clientcfg.RefusedError); !errors.As(err, &refused) || fielderr.Of(err) != nil {
		t.Errorf("a change that has nothing to do with it: %v", err)
	}
	store.put(stored("candidates/c3", "null"), stored("candidates/c4", "null"))
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "left out", s.Status().LeftOut, 0)
}
