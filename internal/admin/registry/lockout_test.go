package registry

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestTwoOperatorsDemoteEachOther at the same moment: one of them stays an operator.
func TestTwoOperatorsDemoteEachOther(t *testing.T) {
	store := openTestStore(t)
	for _, id := range []string{"anna", "bert"} {
		c := clientcfg.Client{ID: id}
		clientcfg.MakeOperator(&c)
		addClient(t, store, c)
	}
	for round := range 40 {
		ids, errs := []string{"anna", "bert"}, make([]error, 2)
		var both sync.WaitGroup
		for i, id := range ids {
			by := clientcfg.Actor{ClientID: ids[1-i]}
			both.Go(func() {
				r := New(Options{Store: store, Events: store, By: by})
				_, errs[i] = r.ChangeClient(t.Context(), id, func(c *clientcfg.Client) error {
					c.Scopes = []string{clientcfg.ScopeLimitsRead}
					return nil
				})
			})
		}
		both.Wait()
		lost := slices.IndexFunc(errs, func(err error) bool { return err == nil })
		var lockOut *LockOutError
		if lost < 0 || !errors.As(errs[1-lost], &lockOut) {
			t.Fatalf("round %d: errors %v, want one of them a *LockOutError", round, errs)
		}
		_, err := New(Options{Store: store}).ChangeClient(t.Context(), ids[lost], func(c *clientcfg.Client) error {
			clientcfg.MakeOperator(c)
			return nil
		})
		check.OK(t, err)
	}
}
