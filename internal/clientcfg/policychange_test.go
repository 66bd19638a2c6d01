package clientcfg_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

func TestChangeIsStoredWithItsEntryAndInForce(t *testing.T) {
	store := &policyStore{}
	var adopted []int64
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
		Adopted: func(old, next *clientcfg.PolicySnapshot) { adopted = append(adopted, old.Version(), next.Version()) },
	})
	requireError(t, err, "")
	for i := range 2 {
		p, err := s.Change(t.Context(), limitShop(int64(3+i)))
		requireError(t, err, "")
		if p != s.Snapshot() || userLimit(s, "shop") != int64(3+i) || p.Version() != int64(1+i) {
			t.Errorf("version %d with a limit of %d is in force", p.Version(), userLimit(s, "shop"))
		}
	}
	if len(store.trail) != 2 || store.trail[0].Version != 1 || store.trail[0].Reason != "3" {
		t.Errorf("the trail is %+v", store.trail)
	}
	// What a change has replaced is in its entry.
	first, second := store.trail[0].Changes[0], store.trail[1].Changes[0]
	check.Equal(t, "before the first", string(first.Before), "null")
	check.Equal(t, "before the second", string(second.Before), string(first.After))
	check.Equal(t, "adopted", adopted, []int64{0, 1, 1, 2})
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "reads of the whole state", store.loads, 1)
}

func TestChangeThatCannotBeChangesNothing(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	_, err := s.Change(t.Context(), limitShop(0))
	requireError(t, err, "clients.shop.user[0].requests")
	stop := errors.New("the edit says no")
	_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
		return clientcfg.PolicyEntry{}, stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("the error is %v", err)
	}
	_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (e clientcfg.PolicyEntry, _ error) {
		for i := range 200 {
			e.Changes = append(e.Changes, stored("policies/"+strconv.Itoa(i), `{"note":"`+strings.Repeat("x", 6000)+`"}`))
		}
		return e, nil
	})
	requireError(t, err, "more than 1048576")
	_, err = s.Try(t.Context(), limitShop(5))
	requireError(t, err, "")
	if store.state.Version != 0 || len(store.trail) != 0 || userLimit(s, "shop") != 7 {
		t.Errorf("something changed: %+v", store.trail)
	}
}

func TestChangeGoesOnAfterLosingARace(t *testing.T) {
	store := &policyStore{race: 3}
	s := newPolicySource(t, store)
	p, err := s.Change(t.Context(), limitShop(3))
	requireError(t, err, "")
	if p.Version() != 4 || len(store.trail) != 4 {
		t.Errorf("version %d after %d entries", p.Version(), len(store.trail))
	}
	store.race = 1000
	if _, err = s.Change(t.Context(), limitShop(4)); !errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("the error of an endless race is %v", err)
	}
}

func TestNoChangeIsLostBetweenInstances(t *testing.T) {
	store := &policyStore{}
	var workers sync.WaitGroup
	for i := range 8 {
		s := newPolicySource(t, store)
		workers.Go(func() {
			for j := range 5 {
				c := stored(fmt.Sprintf("policies/%d-%d", i, j), "{}")
				err := clientcfg.ErrPolicyConflict
				for errors.Is(err, clientcfg.ErrPolicyConflict) { // after too many lost races nothing is changed
					_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
						return *entry(0, c), nil
					})
				}
				if err != nil {
					t.Errorf("change of %s: %v", c.Target, err)
				}
			}
		})
	}
	workers.Wait()
	if n := len(store.state.Targets); n != 40 || len(store.trail) != 40 {
		t.Errorf("%d policies and %d entries of 40", n, len(store.trail))
	}
}
