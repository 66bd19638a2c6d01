package overload

import "context"

// Pause removes the request in ctx from the requests in progress while it waits for something that
// uses no processor and has its own bounds, such as the store. Otherwise the waiting requests would
// leave no room for requests that do not need it. Resume ends the pause. Pause does nothing if ctx
// carries no admitted request.
func (g *Shedder) Pause(ctx context.Context) {
	if v := rankingFrom(ctx); v != nil && v.request != nil && v.paused.Add(1) == 1 {
		g.inFlight.Add(-1)
	}
}

// Resume ends a pause.
func (g *Shedder) Resume(ctx context.Context) {
	if v := rankingFrom(ctx); v != nil && v.request != nil && v.paused.Add(-1) == 0 {
		g.inFlight.Add(1)
	}
}
