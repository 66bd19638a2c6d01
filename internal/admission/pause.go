package admission

import (
	"context"
	"sync/atomic"
)

// Pause takes the request that ctx carries out of those that are worked on, while it waits for something that keeps no
// processor busy and has bounds of its own, such as the store: or the waiting would leave no room for requests that do not
// need it. Resume ends that. The request is nil, which Resume takes, if ctx carries none that was admitted.
func Pause(ctx context.Context) *Request {
	r := Requested(ctx)
	if r == nil || r.gate == nil {
		return nil
	}
	if atomic.AddInt32(&r.paused, 1) == 1 {
		r.gate.inFlight.Add(-1)
	}
	return r
}

// Resume ends a pause.
func (r *Request) Resume() {
	if r != nil && atomic.AddInt32(&r.paused, -1) == 0 {
		r.gate.inFlight.Add(1)
	}
}
