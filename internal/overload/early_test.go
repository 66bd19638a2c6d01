package overload

import (
	"net"
	"sync/atomic"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestRefuseEarly checks that requests that are certain to be refused are refused and counted, and
// that all others are left to Admit without a trace.
func TestRefuseEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		mode  ratelimit.Mode
		level level
		want  uint64
	}{
		"nothing is refused":      {ratelimit.Enforce, 0, 0},
		"all of it":               {ratelimit.Enforce, levelOf(Ranks, 0), 1},
		"of its rank a part":      {ratelimit.Enforce, levelOf(int(rankOf(ratelimit.SheddablePlus, ClientCredentials, standings-1)), 0.999), 0},
		"all of its rank":         {ratelimit.Enforce, levelOf(int(rankOf(ratelimit.SheddablePlus, ClientCredentials, standings-1))+1, 0), 1},
		"only what is below it":   {ratelimit.Enforce, levelOf(int(rankOf(ratelimit.SheddablePlus, ClientCredentials, standings-1)), 0), 0},
		"dry-run refuses nothing": {ratelimit.DryRun, levelOf(Ranks, 0), 0},
		"off refuses nothing":     {ratelimit.Off, levelOf(Ranks, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSettings()
			s.Mode = tc.mode
			var told []Outcome
			g := New(s, func(_ *Request, o Outcome) { told = append(told, o) })
			g.level.Store(uint32(tc.level))
			shed := g.RefuseEarly(t.Context(), &Request{ClientID: "shop", Class: ClientCredentials})
			check.Equal(t, "refused", shed != nil, tc.want == 1)
			check.Equal(t, "told", len(told), int(tc.want))
			var arrived uint64
			for i := range g.demand.arrived {
				arrived += uint64(g.demand.arrived[i].Load())
			}
			check.Equal(t, "counted in the demand", arrived, tc.want)
			check.Equal(t, "counted as sent by the client", g.clients.find("shop").sent.now.Load(), int64(tc.want))
			st := g.Stats()
			check.Equal(t, "outcome", st.Requests[ClientCredentials][Shed], tc.want)
			check.Equal(t, "in flight", st.InFlight, 0)
		})
	}
}

// diced is a connection with dice.
type diced struct {
	*net.TCPConn
	dice atomic.Uint32
}

func (d *diced) Dice() *atomic.Uint32 { return &d.dice }

// TestOneDice checks that a request of a rank that is partly refused is refused early or not at all.
// The next request of the connection has other dice.
func TestOneDice(t *testing.T) {
	_, server := check.Connected(t)
	c := &diced{TCPConn: server.(*net.TCPConn)}
	ctx, r := WithConn(t.Context(), c), Request{ClientID: "shop", Class: ClientCredentials}
	for _, tc := range []struct {
		dice    uint32
		refused bool
	}{{0, true}, {levelUnit/2 - 2, true}, {levelUnit / 2, false}, {levelUnit - 1, false}} {
		g := New(DefaultSettings(), nil)
		rank := rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, g.clients.standing(&r, 0)) // of the next request, too
		g.level.Store(uint32(levelOf(int(rank), 0.5)))
		c.dice.Store(tc.dice)
		check.Equal(t, "refused early", g.RefuseEarly(ctx, &r) != nil, tc.refused)
		check.Equal(t, "cast", c.dice.Load() != tc.dice, tc.refused)
		if tc.refused {
			continue
		}
		_, err := g.Admit(ctx, &r)
		check.OK(t, err)
		check.Equal(t, "cast by Admit", c.dice.Load() != tc.dice, true)
	}
}

// TestRefusingTokens checks that token requests are checked early only while some of them are
// refused.
func TestRefusingTokens(t *testing.T) {
	tokens := int(rankOf(ratelimit.SheddablePlus, Password, 0))
	for name, tc := range map[string]struct {
		mode  ratelimit.Mode
		level level
		want  bool
	}{
		"nothing is refused":          {ratelimit.Enforce, 0, false},
		"all sign-ins, and no tokens": {ratelimit.Enforce, levelOf(tokens, 0), false},
		"a part of the first tokens":  {ratelimit.Enforce, levelOf(tokens, 0.01), true},
		"all":                         {ratelimit.Enforce, levelOf(Ranks, 0), true},
		"dry-run":                     {ratelimit.DryRun, levelOf(Ranks, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSettings()
			s.Mode = tc.mode
			g := New(s, nil)
			g.level.Store(uint32(tc.level))
			check.Equal(t, "refusing tokens", g.RefusingTokens(), tc.want)
		})
	}
}
