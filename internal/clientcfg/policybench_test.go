package clientcfg_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// BenchmarkPolicies measures, for a data file with many policies: the cost of a change for the
// instance that makes it and for one that follows, a period without a change, and a start.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		benchmarkPolicies(b, newPolicyStore(b), n)
	}
}

func benchmarkPolicies(b *testing.B, s *policyStore, n int) {
	b.Helper()
	start := func() *following { return follow(b, s, clientcfg.PolicyOptions{}) }
	one, other, i := start(), start(), 0
	change := func(changes ...clientcfg.Change) {
		_, err := one.Change(b.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
			return clientcfg.Event{At: time.Now(), Action: "set", Changes: changes}, nil
		})
		check.OK(b, err)
	}
	const each = 1000 // in one entry
	for first := 0; first < n; first += each {
		var changes []clientcfg.Change
		for k := first; k < min(first+each, n); k++ {
			changes = append(changes, limitOf(b, k, int64(k%500+1)))
		}
		change(changes...)
	}
	next := func() {
		i++
		change(limitOf(b, i%n, int64(i%500+1)))
	}
	refresh := func() {
		check.OK(b, other.Refresh(b.Context()))
	}
	run := func(name string, before, do func()) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				before()
				b.StartTimer()
				do()
			}
		})
	}
	nothing := func() {}
	run("change", nothing, next)
	run("adopt", next, refresh)
	run("rest", nothing, refresh)
	run("start", nothing, func() { start() })
}

// limitOf gives a client a limit.
func limitOf(b *testing.B, client int, requests int64) clientcfg.Change {
	b.Helper()
	limit := ratelimit.NewLimit("per-minute", requests, time.Minute)
	c, err := clientcfg.ChangePolicy(fmt.Sprintf("client-%06d", client), &clientcfg.ClientPolicy{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
	})
	check.OK(b, err)
	return c
}
