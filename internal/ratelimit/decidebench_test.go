package ratelimit

import (
	"testing"
	"time"
)

// BenchmarkDecide measures one decision of each kind on keys in memory that share their counts.
func BenchmarkDecide(b *testing.B) {
	now := at(epoch + 30_000)
	big := func(name string, frames int) Limit {
		l := NewLimit(name, MaxRequests, time.Minute)
		l.Frames = frames
		return l
	}
	strict := NewLimit("strict", MaxRequests, time.Minute)
	strict.MakeStrict()
	full := NewLimit("full", 1, time.Minute)
	user := Key{"client-711", "user-4711"}
	for _, tc := range []struct {
		name   string
		policy Policy
		k      Key
		source string
	}{
		{"user", Policy{User: []Limit{big("user", 1)}}, user, ""},
		{"client", Policy{Client: []Limit{big("client", 1)}}, Key{ClientID: "client-711"}, ""},
		{"sixty frames", Policy{User: []Limit{big("user", 60)}}, user, ""},
		{"three limits", Policy{User: []Limit{big("a", 1), big("b", 1), big("c", 1)}}, user, ""},
		{"total", Policy{User: []Limit{big("user", 1)}, Total: []Limit{big("total", 1)}}, user, ""},
		{"total frames", Policy{User: []Limit{big("user", 10)}, Total: []Limit{big("total", 10)}}, user, ""},
		{"source and total", Policy{User: []Limit{big("user", 1)}, Source: []Limit{big("source", 1)}, Total: []Limit{big("total", 1)}}, user, "10.0.0.1"},
		{"denied", Policy{User: []Limit{full}}, user, ""},
		{"denied total", Policy{User: []Limit{big("user", 1)}, Total: []Limit{NewLimit("full", 1, time.Second)}}, user, ""},
		{"strict", Policy{User: []Limit{strict}}, user, ""},
	} {
		p := tc.policy
		if p.User == nil {
			p.User = []Limit{big("user", 1)}
		}
		if p.Client == nil {
			p.Client = []Limit{big("client", 1)}
		}
		compiled, err := Compile(Settings{Mode: Enforce, CanaryPercent: 100, Default: p})
		if err != nil {
			b.Fatal(err)
		}
		e := compiled.For("client-711").ForRequest(0, tc.source)
		c := NewCounters(0)
		y := attach(c)
		y.SetUncertainty(now, time.Millisecond)
		c.Take(now, tc.k, e, 1)
		settle(c, now)
		if p.User[0].Strict {
			s, h := c.lookup(tc.k)
			s.leaseOf(s.find(h)).held[1] = 1 << 29
		}
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Take(now, tc.k, e, 1)
			}
		})
		b.Run("denies/"+tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Denies(now, tc.k, e)
			}
		})
	}
}
