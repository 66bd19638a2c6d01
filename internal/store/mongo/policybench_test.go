package mongo

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/mongo/mongotest"
)

// BenchmarkPolicies: what a change costs the instance that makes it and another that follows, what a
// period without a change costs, and a start, by the number of policies. The server is part of it.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		uri, database := mongotest.Database(b)
		s, err := Open(b.Context(), Options{URI: uri, Database: database})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		set := func(client, requests int) clientcfg.Change {
			return clientcfg.Change{
				Target: clientcfg.PolicyTarget(fmt.Sprintf("client-%06d", client)), Before: json.RawMessage("null"),
				After: json.RawMessage(fmt.Sprintf(`{"user":[{"name":"per-minute","requests":%d,"window":"1m","frames":1,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"share"}],"note":"contract"}`, requests)),
			}
		}
		for left, version := n, int64(1); left > 0; version++ {
			e := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: version, ID: secret.ID(), At: time.Now()}}
			for range min(left, 1000) {
				left--
				e.Changes = append(e.Changes, set(left, left%500+1))
			}
			if err := s.AppendPolicyEntry(b.Context(), e); err != nil {
				b.Fatal(err)
			}
		}
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
					AuditEntry: clientcfg.AuditEntry{ID: secret.ID(), At: time.Now()}, Changes: []clientcfg.Change{set(i%n, i%500+1)},
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
		_ = s.Close()
	}
}
