package app

import (
	"context"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/admission"
	"oauth-server/internal/config"
)

// overload connects what refuses requests while the server is overloaded with the configuration and with what
// operators see. Its fields are set before the first request.
type overload struct {
	setGate  func(admission.Settings)
	setLane  func(maxStoreCalls int) // nil: there is no lane before the store
	activity *activity.Recorder
}

// set uses a changed configuration.
func (o *overload) set(c config.Overload) {
	o.setGate(c.Gate())
	if o.setLane != nil {
		o.setLane(c.MaxStoreCalls)
	}
}

// observe records a request that was not simply admitted. It implements [admission.Observer].
func (o *overload) observe(_ context.Context, r *admission.Request, outcome admission.Outcome) {
	if outcome == admission.Shed || outcome == admission.WouldShed {
		o.activity.Shed(time.Now(), r.ClientID, outcome == admission.WouldShed)
	}
}
