package overload

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestStarvedInDryRun checks that a request that would have been refused, and is refused later
// because there is no processor for its password, has one outcome and does not change the outcomes
// of others.
func TestStarvedInDryRun(t *testing.T) {
	s := DefaultSettings()
	s.Mode = ratelimit.DryRun
	g := New(s, nil)
	send := func(l level, starved bool) {
		g.level.Store(uint32(l))
		r := Request{ClientID: "shop", Class: Password}
		rank, err := g.Admit(t.Context(), &r)
		check.OK(t, err)
		if would := l > 0; r.WouldShed != would {
			t.Errorf("would have been refused: %v, want %v", r.WouldShed, would)
		}
		if starved {
			_ = g.Starved(WithRequest(t.Context(), &r, rank))
		}
		g.Leave()
	}
	all := levelOf(Ranks, 0)
	send(all, true)
	send(0, false)
	send(all, false)
	send(all, false)
	want := [Outcomes]uint64{Admitted: 1, Shed: 1, WouldShed: 2}
	if got := g.Stats().Requests[Password]; got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}
