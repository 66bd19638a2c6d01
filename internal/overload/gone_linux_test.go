package overload

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestHungUpRefusedEarly checks that a caller that has hung up is counted as such, even if its
// request would be refused before it is read. Next to other programs, a server detects an overload
// by such callers.
func TestHungUpRefusedEarly(t *testing.T) {
	client, server := check.Connected(t)
	var seen []Outcome
	g := New(DefaultSettings(), func(_ *Request, o Outcome) { seen = append(seen, o) })
	g.level.Store(uint32(levelOf(Ranks, 0)))
	ctx := WithConn(t.Context(), server)
	r := Request{ClientID: "shop", Class: ClientCredentials, Criticality: ratelimit.Sheddable}
	check.Equal(t, "refused", g.RefuseEarly(ctx, &r) != nil, true)
	check.OK(t, client.Close())
	check.Eventually(t, "the caller has gone", func() bool { return CallerGone(ctx) })
	check.Equal(t, "refused", g.RefuseEarly(ctx, &r) != nil, true)
	check.Equal(t, "outcomes", seen, []Outcome{Shed, Abandoned})
	check.Equal(t, "gone since the last beat", g.gone.Load(), uint64(1))
}
