package clientcfg_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// BenchmarkTier measures changes if 100,000 policies have a tier.
func BenchmarkTier(b *testing.B) {
	const removed = 100
	store := newPolicyStore(b)
	changes := []clientcfg.Change{stored("tiers/gold", `{"user":[{"requests":9}]}`), stored("tiers/none", `{}`)}
	var removals []clientcfg.Change
	for i := range removed {
		target := fmt.Sprintf("tiers/unused-%03d", i)
		changes, removals = append(changes, stored(target, `{}`)), append(removals, stored(target, "null"))
	}
	for i := range clientcfg.MaxPolicies {
		changes = append(changes, stored(fmt.Sprintf("policies/client-%06d", i), `{"tier":"gold"}`))
	}
	for part := range slices.Chunk(changes, 1000) {
		store.put(part...)
	}
	s := newPolicySource(b, store)
	p := s.Snapshot()
	for _, tt := range []struct {
		name    string
		changes []clientcfg.Change
	}{
		{"changed", []clientcfg.Change{stored("tiers/gold", `{"user":[{"requests":8}]}`)}},
		{"removed", []clientcfg.Change{stored("tiers/none", "null")}},
		{fmt.Sprint(removed, " removed"), removals},
		{"override", []clientcfg.Change{stored("overrides/client-000007 ada", `{"user":[{"requests":8}]}`)}},
		{"of a policy", []clientcfg.Change{stored("policies/client-000007", `{"tier":"none"}`)}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Apply(entry(p.Version()+1, tt.changes...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run(fmt.Sprint("concerned by ", removed), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Concerned(removals)
		}
	})
	for i := range removed {
		value, err := clientcfg.Temporarily([]clientcfg.Change{stored(fmt.Sprintf("tiers/brief-%03d", i), `{}`)}, dawn.Add(time.Duration(i)*time.Minute))
		check.OK(b, err)
		store.put(value...)
	}
	check.OK(b, s.Refresh(context.Background()))
	b.Run(fmt.Sprint("ends of ", removed, " checked"), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check.Equal(b, "errors", s.Snapshot().CheckEnds(p), nil)
		}
	})
}
