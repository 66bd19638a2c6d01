package overload

import (
	"errors"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestStarved checks that an admitted request without a processor for its password has the single
// outcome shed in every mode, and counts as an overload of its criticality. No counter decreases.
func TestStarved(t *testing.T) {
	for _, mode := range []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off} {
		s := DefaultSettings()
		s.Mode = mode
		seen := map[string]int{}
		g := New(s, func(r *Request, o Outcome) { seen[r.ClientID+" "+o.String()]++ })
		admitted := uint64(0)
		send := func(starved bool) {
			r := Request{ClientID: "shop", Class: Password}
			rank, err := g.Admit(t.Context(), &r)
			check.OK(t, err)
			if starved {
				var shed *ShedError
				if err := g.Starved(WithRequest(t.Context(), &r, rank)); !errors.As(err, &shed) || shed.Short != Processor || shed.RetryAfter <= 0 {
					t.Errorf("%v: %v", mode, err)
				}
			}
			g.Leave()
			now := g.Stats().Requests[Password][Admitted]
			if now < admitted {
				t.Errorf("%v: admitted %d after %d", mode, now, admitted)
			}
			admitted = now
		}
		for range 3 {
			send(true)
		}
		g.set(g.started, 0)
		check.Equal(t, "refused up to", g.Stats().UpTo, ratelimit.SheddablePlus)
		for range 4 {
			send(false)
		}
		want := [Outcomes]uint64{Admitted: 4, Shed: 3}
		if mode == ratelimit.Off { // this mode counts nothing else
			want[Admitted] = 0
		}
		check.Equal(t, "outcomes", g.Stats().Requests[Password], want)
		if len(seen) != 1 || seen["shop shed"] != 3 {
			t.Errorf("%v: observed %v", mode, seen)
		}
	}
}

// TestStarvedWithoutAdmission covers a request that never entered the shedder. It is refused and not
// counted.
func TestStarvedWithoutAdmission(t *testing.T) {
	g := New(DefaultSettings(), func(*Request, Outcome) { t.Error("observed") })
	if err := g.Starved(WithRequest(t.Context(), nil, 3)); !errors.As(err, new(*ShedError)) {
		t.Error(err)
	}
	if g.Stats().Requests != New(DefaultSettings(), nil).Stats().Requests {
		t.Error("it was counted")
	}
}

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
		check.Equal(t, "would have been refused", r.WouldShed, l > 0)
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
	check.Equal(t, "counted", g.Stats().Requests[Password], want)
}
