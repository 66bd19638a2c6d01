package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"oauth-server/internal/clientcfg"
)

// policiesFold makes random changes of one or several targets, and compares the state on the way.
func policiesFold(t *testing.T, b Backend) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var want clientcfg.PolicyState
	for version := int64(1); version <= 150; version++ {
		e := entryFor(version)
		e.Changes = nil
		for range 1 + rng.IntN(4) {
			c := clientcfg.Change{Target: clientcfg.PolicyTarget(strconv.Itoa(rng.IntN(20))), Before: json.RawMessage("null"), After: json.RawMessage("null")}
			if rng.IntN(3) > 0 {
				c.After = json.RawMessage(fmt.Sprintf(`{"note":"%d"}`, rng.Int()))
			}
			e.Changes = append(e.Changes, c) // of one target perhaps twice: the last one stays
		}
		succeed(t, "fold", want.Fold(&e))
		appendEntry(t, b, e)
		if version%10 == 1 {
			equal(t, fmt.Sprintf("policies of version %d", version), want, policies(t, b))
		}
	}
	equal(t, "policies", want, policies(t, b))
}

func policyReader(t *testing.T, b Backend) {
	t.Helper()
	const n = 500
	write(t, b, n)
	for _, from := range []int64{0, 1, 300, n, n + 1} {
		entries := entriesFrom(t, b, from)
		if want := n + 1 - max(from, 1); int64(len(entries)) != want {
			t.Errorf("%d entries from %d on, want %d", len(entries), from, want)
		}
		for i := range entries {
			equal(t, "entry", entryFor(max(from, 1)+int64(i)), entries[i])
		}
	}
}

// policyReaders read states while they change and the trail is swept: each is what the entries up to its
// version come to, whatever was folded in between.
func policyReaders(t *testing.T, b Backend) {
	t.Helper()
	const last = 200
	states := make([]clientcfg.PolicyState, last+1)
	for version := int64(1); version <= last; version++ {
		states[version] = foldedTo(t, version)
	}
	written := make(chan error, 1)
	go func() {
		for version := int64(1); version <= last; version++ {
			err := b.AppendPolicyEntry(t.Context(), entryFor(version))
			if err == nil && version%20 == 0 {
				_, err = b.SweepAudit(t.Context(), entryFor(version-10).At, entryFor(version).At)
			}
			if err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for seen := int64(0); seen < last; {
		state, err := b.PolicyState(t.Context())
		if err != nil {
			t.Fatal(errors.Join(err, <-written))
		}
		if state.Version < seen {
			t.Fatalf("version %d was read after %d", state.Version, seen)
		}
		seen = state.Version
		equal(t, fmt.Sprintf("policies of version %d", seen), states[seen].Targets, state.Targets)
	}
	succeed(t, "write", <-written)
}

// policiesMany stores as many policies as there may be, many in each entry, and then changes one.
func policiesMany(t *testing.T, b Backend, all int) {
	t.Helper()
	const entries = 50
	each := int64(all / entries)
	var version int64
	for range entries {
		version++
		e := entryFor(version)
		e.Changes = nil
		for i := range each {
			id := "client-" + strconv.FormatInt(version*each+i, 10)
			e.Changes = append(e.Changes, clientcfg.Change{
				Target: clientcfg.PolicyTarget(id), Before: json.RawMessage("null"), After: json.RawMessage(`{"trusted":true,"note":"` + id + `"}`),
			})
		}
		appendEntry(t, b, e)
	}
	if n := len(policies(t, b).Targets); n != all {
		t.Fatalf("%d policies are there, want %d", n, all)
	}
	for range 40 { // across a fold
		version++
		e := entryFor(version)
		e.Changes[0].Target, e.Changes[0].After = clientcfg.PolicyTarget("client-"+strconv.FormatInt((version-entries)*each, 10)), json.RawMessage("null")
		appendEntry(t, b, e)
	}
	if got, want := len(policies(t, b).Targets), all-40; got != want {
		t.Errorf("%d policies are left, want %d", got, want)
	}
}
