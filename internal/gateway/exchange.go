package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Exchange is one request to the upstream, for [Options].Exchanged.
type Exchange struct {
	Token  bool // a token request; otherwise one that passes unchanged
	Status int  // of the answer; 0: see Missing
	Took   time.Duration
	// Missing says why there is no answer: [NoAnswer], [Timeout] or [HungUp].
	Missing string
}

// The values of [Exchange].Missing.
const (
	NoAnswer = "none"    // the upstream cannot be reached, or closed the connection
	Timeout  = "timeout" // it took too long
	HungUp   = "gone"    // the client hung up before the answer
)

// exchanged reports an exchange that began then and has ended, with an answer of that status or with an error.
func (g *Gateway) exchanged(ctx context.Context, token bool, began time.Time, status int, err error) {
	e := Exchange{Token: token, Status: status, Took: time.Since(began)}
	if err != nil {
		e.Status, e.Missing = 0, missing(ctx, err)
	}
	g.o.Exchanged(e)
}

// missing says why there is no answer to a request of that context.
func missing(ctx context.Context, err error) string {
	var slow net.Error
	switch {
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		return HungUp
	case errors.As(err, &slow) && slow.Timeout():
		return Timeout
	}
	return NoAnswer
}

// timed reports the exchanges of a transport. The time ends with the header of the answer: a stream may never end.
type timed struct {
	http.RoundTripper
	g *Gateway
}

// RoundTrip implements [http.RoundTripper].
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := t.RoundTripper.RoundTrip(r)
	status := 0
	if err == nil {
		status = res.StatusCode
	}
	t.g.exchanged(r.Context(), false, began, status, err)
	return res, err
}
