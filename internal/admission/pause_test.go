package admission

import (
	"errors"
	"testing"

	"oauth-server/internal/check"
)

// TestPaused: a request that waits for the store takes no room from others, whatever calls it makes at once.
func TestPaused(t *testing.T) {
	s := DefaultSettings()
	s.MaxInFlight = minMaxInFlight
	g := New(s, nil)
	refreshes := make([]*Request, 0, minMaxInFlight)
	for range minMaxInFlight {
		r := Request{ClientID: "shop", Class: Refresh}
		rank, err := g.Admit(t.Context(), &r)
		check.OK(t, err)
		ctx := WithRequest(t.Context(), &r, rank)
		refreshes = append(refreshes, Pause(ctx), Pause(ctx))
	}
	check.Equal(t, "in flight while all of them wait", g.Stats().InFlight, 0)
	one := Request{ClientID: "shop", Class: ClientCredentials}
	_, err := g.Admit(t.Context(), &one)
	check.OK(t, err)
	g.Leave()
	for i, w := range refreshes {
		w.Resume()
		check.Equal(t, "in flight", g.Stats().InFlight, (i+1)/2)
	}
	_, err = g.Admit(t.Context(), &one)
	check.Equal(t, "refused when they work", errors.As(err, new(*ShedError)), true)
}

// TestPauseOfNothing: work of the server's own has no room to give.
func TestPauseOfNothing(t *testing.T) {
	Pause(t.Context()).Resume()
	Pause(WithRequest(t.Context(), &Request{}, 1)).Resume()
}
