package storetest

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// BenchmarkPolicies measures, in an empty store that gets so many policies: what a change costs the
// instance that makes it, and another that follows; a period without a change; and a start.
func BenchmarkPolicies(b *testing.B, s clientcfg.PolicyStore, n int) {
	b.Helper()
	fillPolicies(b, s, n)
	source := func() *clientcfg.PolicySource {
		p, err := clientcfg.NewPolicySource(b.Context(), s, clientcfg.PolicyOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	one, other, i := source(), source(), 0
	change := func() {
		i++
		_, err := one.Change(b.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
			return clientcfg.PolicyEntry{
				AuditEntry: clientcfg.AuditEntry{ID: secret.ID(), At: time.Now().UTC()}, Changes: []clientcfg.Change{limitOf(b, i%n, int64(i%500+1))},
			}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	refresh := func() {
		if err := other.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
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
	run("change", nothing, change)
	run("adopt", change, refresh)
	run("rest", nothing, refresh)
	run("start", nothing, func() { source() })
}

// fillPolicies gives so many clients a policy, in few entries.
func fillPolicies(b *testing.B, s clientcfg.PolicyStore, n int) {
	b.Helper()
	const each = 1000
	for version := int64(1); n > 0; version++ {
		e := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: version, ID: secret.ID(), At: time.Now().UTC()}}
		for range min(n, each) {
			n--
			e.Changes = append(e.Changes, limitOf(b, n, int64(n%500+1)))
		}
		if err := s.AppendPolicyEntry(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}

// limitOf gives a client a limit.
func limitOf(b *testing.B, client int, requests int64) clientcfg.Change {
	b.Helper()
	limit := ratelimit.NewLimit("per-minute", requests, time.Minute)
	c, err := clientcfg.ChangePolicy(fmt.Sprintf("client-%06d", client), &clientcfg.ClientPolicy{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}
