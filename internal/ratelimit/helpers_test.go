package ratelimit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
)

func perMinute(requests int64) Limit { return NewLimit("per-minute", requests, time.Minute) }

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (- wanted, + got):\n%s", what, diff)
	}
}

// forGrants returns a copy of the limit, restricted to some grants.
func forGrants(l Limit, g Grants) Limit {
	l.Grants = g
	return l
}

// strictly returns a strict limit.
func strictly(requests int64, window time.Duration) Limit {
	l := NewLimit("strict", requests, window)
	l.MakeStrict()
	return l
}

// edited returns p with changes.
func edited(tb testing.TB, p *Compiled, change func(e *CompiledEdit) error) *Compiled {
	tb.Helper()
	e := p.Edit()
	check.OK(tb, change(e))
	return e.Compiled()
}

func defaults(tb testing.TB) *Compiled {
	tb.Helper()
	return defaultsWith(tb, DefaultSettings())
}

func defaultsWith(tb testing.TB, s Settings) *Compiled {
	tb.Helper()
	p, err := Compile(s)
	check.OK(tb, err)
	return p
}

// override returns p with limits for one user. No limits remove the override.
func override(tb testing.TB, p *Compiled, clientID, username string, limits ...Limit) *Compiled {
	tb.Helper()
	return edited(tb, p, func(e *CompiledEdit) error { return e.SetOverride(clientID, username, limits) })
}

// epoch is an arbitrary time, not aligned to anything.
const epoch = 1_622_211_783_217
