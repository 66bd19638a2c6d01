package overload

import (
	"context"
	"errors"
	"testing"

	"oauth-server/internal/check"
)

// TestPaused checks that a request that waits for the store takes no room from others, whatever
// concurrent calls it makes.
func TestPaused(t *testing.T) {
	const most = 10
	s := DefaultSettings()
	s.MaxInFlight = most
	g := New(s, nil)
	waiting := make([]context.Context, 0, 2*most)
	for range most {
		r := Request{ClientID: "shop", Class: Refresh}
		rank, err := g.Admit(t.Context(), &r)
		check.OK(t, err)
		ctx := WithRequest(t.Context(), &r, rank)
		g.Pause(ctx)
		g.Pause(ctx)
		waiting = append(waiting, ctx, ctx)
	}
	check.Equal(t, "in flight while all of them wait", g.Stats().InFlight, 0)
	one := Request{ClientID: "shop", Class: ClientCredentials}
	_, err := g.Admit(t.Context(), &one)
	check.OK(t, err)
	g.Leave()
	for i, ctx := range waiting {
		g.Resume(ctx)
		check.Equal(t, "in flight", g.Stats().InFlight, (i+1)/2)
	}
	_, err = g.Admit(t.Context(), &one)
	check.Equal(t, "refused when they work", errors.As(err, new(*ShedError)), true)
}

// TestPauseOfNothing checks that pausing the server's own work gives no room to others.
func TestPauseOfNothing(t *testing.T) {
	g := New(DefaultSettings(), nil)
	for _, ctx := range []context.Context{t.Context(), WithRequest(t.Context(), nil, 1)} {
		g.Pause(ctx)
		g.Resume(ctx)
		g.Pause(ctx)
		check.Equal(t, "in flight", g.Stats().InFlight, 0)
	}
}
