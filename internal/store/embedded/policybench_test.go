package embedded

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// fillPolicies gives so many clients a policy, in few entries.
func fillPolicies(tb testing.TB, s *Store, n int) {
	tb.Helper()
	const each = 1000
	for version := int64(1); n > 0; version++ {
		e := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: version, ID: secret.ID(), At: time.Now().UTC(), Before: json.RawMessage("null"), After: json.RawMessage("null")}}
		for range min(n, each) {
			n--
			e.Changes = append(e.Changes, limitOf(tb, n, int64(n%500+1)))
		}
		if err := s.AppendPolicyEntry(tb.Context(), e); err != nil {
			tb.Fatal(err)
		}
	}
}

// limitOf gives a client a limit.
func limitOf(tb testing.TB, client int, requests int64) clientcfg.Change {
	tb.Helper()
	limit := ratelimit.NewLimit("per-minute", requests, time.Minute)
	c, err := clientcfg.ChangePolicy(fmt.Sprintf("client-%06d", client), &clientcfg.ClientPolicy{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// BenchmarkPolicies: what a change costs the instance that makes it and another that follows, and what a
// start costs, by the number of policies.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		s, err := Open(filepath.Join(b.TempDir(), "policies.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
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
		run := func(name string, do func()) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					do()
				}
			})
		}
		run("change", change)
		b.Run(fmt.Sprintf("adopt/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				change()
				b.StartTimer()
				if err := other.Refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		run("start", func() { source() })
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
