package clientcfg_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store"
)

func TestChangeIsStoredWithItsEntryAndInForce(t *testing.T) {
	store := newPolicyStore(t)
	s := follow(t, store, clientcfg.PolicyOptions{})
	for i := range 2 {
		p, err := s.Change(t.Context(), limitShop(int64(3+i)))
		check.OK(t, err)
		if p.Version() != s.Snapshot().Version() || userLimit(s, "shop") != int64(3+i) || p.Version() != int64(1+i) {
			t.Errorf("version %d with a limit of %d is in force", p.Version(), userLimit(s, "shop"))
		}
	}
	trail := store.trail()
	if len(trail) != 2 || trail[0].Number != 1 || trail[0].Reason != "3" {
		t.Errorf("the trail is %+v", trail)
	}
	// The entry of a change contains the previous value.
	first, second := trail[0].Changes[0], trail[1].Changes[0]
	check.Equal(t, "before the first", string(first.Before), "null")
	check.Equal(t, "before the second", string(second.Before), string(first.After))
	check.OK(t, s.Refresh(t.Context()))
	check.Equal(t, "reads of all policies", store.loads, 1)
}

func TestChangeThatCannotBeChangesNothing(t *testing.T) {
	store := newPolicyStore(t)
	s := newPolicySource(t, store)
	_, err := s.Change(t.Context(), limitShop(0))
	requireError(t, err, "clients.shop.user[0].requests")
	stop := errors.New("the edit says no")
	_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		return clientcfg.Event{}, stop
	})
	check.ErrorIs(t, err, stop)
	_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (e clientcfg.Event, _ error) {
		for i := range 200 {
			e.Changes = append(e.Changes, stored("policies/"+strconv.Itoa(i), `{"note":"`+strings.Repeat("x", 6000)+`"}`))
		}
		return e, nil
	})
	requireError(t, err, "maximum of 1048576")
	_, err = s.Try(t.Context(), limitShop(5))
	check.OK(t, err)
	if trail := store.trail(); len(trail) != 0 || userLimit(s, "shop") != 7 {
		t.Errorf("something changed: %+v", trail)
	}
}

func TestChangeGoesOnAfterLosingARace(t *testing.T) {
	store := newPolicyStore(t)
	s := newPolicySource(t, store)
	store.race = 30
	p, err := s.Change(t.Context(), limitShop(3))
	check.OK(t, err)
	check.Equal(t, "version", p.Version(), 31)
	check.Equal(t, "entries", len(store.trail()), 31)
}

// TestChangeKnowsItsNumber: entries of other kinds count too.
func TestChangeKnowsItsNumber(t *testing.T) {
	f := newPolicyStore(t)
	s := newPolicySource(t, f)
	for range 3 {
		f.append(store.Entry{Value: []byte("{}")})
	}
	edit := func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		check.Equal(t, "version before", p.Version(), 0)
		e.Action, e.Changes = "update", []clientcfg.Change{shopHas(3)}
		return e, nil
	}
	for _, do := range []func(context.Context, clientcfg.Edit) (*clientcfg.PolicySnapshot, error){s.Try, s.Change} {
		p, err := do(t.Context(), edit)
		check.OK(t, err)
		own, _ := p.Policy("shop")
		check.Equal(t, "version of all and of the policy", []int64{p.Version(), own.Changed}, []int64{4, 4})
	}
}

func TestNoChangeIsLostBetweenInstances(t *testing.T) {
	store := newPolicyStore(t)
	var workers sync.WaitGroup
	for i := range 8 {
		s := newPolicySource(t, store)
		workers.Go(func() {
			for j := range 5 {
				_, err := s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
					return *entry(0, stored(fmt.Sprintf("policies/%d-%d", i, j), "{}")), nil
				})
				if err != nil {
					t.Errorf("change %d of %d: %v", j, i, err)
				}
			}
		})
	}
	workers.Wait()
	if n := newPolicySource(t, store).Snapshot().Set().Clients.Len(); n != 40 || len(store.trail()) != 40 {
		t.Errorf("%d policies and %d entries of 40", n, len(store.trail()))
	}
}
