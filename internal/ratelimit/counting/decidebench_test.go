package counting

import (
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

// BenchmarkDecide measures one decision of each kind on keys in memory that share their counts.
func BenchmarkDecide(b *testing.B) {
	now := at(epoch + 30_000)
	big := func(name string, frames int) ratelimit.Limit {
		l := ratelimit.NewLimit(name, ratelimit.MaxRequests, time.Minute)
		l.Frames = frames
		return l
	}
	strict := ratelimit.NewLimit("strict", ratelimit.MaxRequests, time.Minute)
	strict.MakeStrict()
	full := ratelimit.NewLimit("full", 1, time.Minute)
	user := ratelimit.Key{ClientID: "client-711", Username: "user-4711"}
	for _, tc := range []struct {
		name   string
		policy ratelimit.Policy
		k      ratelimit.Key
		source string
	}{
		{"user", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}}, user, ""},
		{"client", ratelimit.Policy{Client: []ratelimit.Limit{big("client", 1)}}, ratelimit.Key{ClientID: "client-711"}, ""},
		{"sixty frames", ratelimit.Policy{User: []ratelimit.Limit{big("user", 60)}}, user, ""},
		{"three limits", ratelimit.Policy{User: []ratelimit.Limit{big("a", 1), big("b", 1), big("c", 1)}}, user, ""},
		{"total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Total: []ratelimit.Limit{big("total", 1)}}, user, ""},
		{"total frames", ratelimit.Policy{User: []ratelimit.Limit{big("user", 10)}, Total: []ratelimit.Limit{big("total", 10)}}, user, ""},
		{"source and total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Source: []ratelimit.Limit{big("source", 1)}, Total: []ratelimit.Limit{big("total", 1)}}, user, "10.0.0.1"},
		{"denied", ratelimit.Policy{User: []ratelimit.Limit{full}}, user, ""},
		{"denied total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Total: []ratelimit.Limit{ratelimit.NewLimit("full", 1, time.Second)}}, user, ""},
		{"strict", ratelimit.Policy{User: []ratelimit.Limit{strict}}, user, ""},
	} {
		p := tc.policy
		if p.User == nil {
			p.User = []ratelimit.Limit{big("user", 1)}
		}
		if p.Client == nil {
			p.Client = []ratelimit.Limit{big("client", 1)}
		}
		compiled, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: p})
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
			s.leaseOf(s.Find(h)).held[1] = 1 << 29
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
