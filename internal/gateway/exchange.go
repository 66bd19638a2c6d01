package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Exchange describes one request to the upstream, for [Options].Exchanged.
type Exchange struct {
	Token  bool // a token request; otherwise a request that passes unchanged
	Status int  // of the answer; 0: no answer, see Missing
	Took   time.Duration
	// Missing is the reason why there is no answer: [NoAnswer], [Timeout] or [HungUp].
	Missing string
}

// The values of [Exchange].Missing.
const (
	NoAnswer = "none"    // the upstream is unreachable or closed the connection
	Timeout  = "timeout" // the upstream took too long
	HungUp   = "gone"    // the client hung up before the answer
)

// exchanged reports an exchange that started at began and ended with the status or with err.
func (g *Gateway) exchanged(ctx context.Context, token bool, began time.Time, status int, err error) {
	e := Exchange{Token: token, Status: status, Took: time.Since(began)}
	if err != nil {
		e.Status, e.Missing = 0, missing(ctx, err)
	}
	g.o.Exchanged(e)
}

// missing returns the reason why a request with this context has no answer.
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

// timed is a transport that reports its exchanges. It measures the time until the header of the
// answer, because a stream may never end.
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
