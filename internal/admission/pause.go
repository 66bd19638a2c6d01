package admission

import "context"

// Pause takes the request that ctx carries out of those that are worked on, while it waits for something that keeps no
// processor busy and has bounds of its own, such as the store: or the waiting would leave no room for requests that do not
// need it. Resume ends that. Nothing happens if ctx carries no request that was admitted.
func (g *Gate) Pause(ctx context.Context) {
	if v := rankingFrom(ctx); v != nil && v.request != nil && v.paused.Add(1) == 1 {
		g.inFlight.Add(-1)
	}
}

// Resume ends a pause.
func (g *Gate) Resume(ctx context.Context) {
	if v := rankingFrom(ctx); v != nil && v.request != nil && v.paused.Add(-1) == 0 {
		g.inFlight.Add(1)
	}
}
