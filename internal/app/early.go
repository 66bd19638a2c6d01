package app

import (
	"context"
	"net"
	"net/http"
	"time"

	"oauth-server/internal/app/connbound"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/httpapi/early"
	"oauth-server/internal/overload"
)

// earlyRefuser implements [early.Refuser], which refuses token requests before they are read.
type earlyRefuser struct {
	shedder interface {
		RefusingTokens() bool
		RefuseEarly(ctx context.Context, r *overload.Request) *overload.ShedError
	}
	service *grants.Service
	own     *httpapi.Server
	drainer *connDrainer
}

// Refusing implements [early.Refuser]. It returns false while the server stops, because then each
// answer must be marked as the last on its connection.
func (e *earlyRefuser) Refusing() bool {
	return e.shedder.RefusingTokens() && !e.drainer.draining.Load()
}

// Refuse implements [early.Refuser]. Early refusals appear in the log and in metrics like requests
// that net/http has read.
func (e *earlyRefuser) Refuse(c net.Conn, r *http.Request, form string) (retryAfter time.Duration, body []byte) {
	received := time.Now()
	req, ok := httpapi.ReadToken(r, form)
	if !ok {
		return 0, nil
	}
	asked, ok := e.service.Foresee(&req)
	if !ok {
		return 0, nil
	}
	shed := e.shedder.RefuseEarly(overload.WithConn(context.Background(), c), &asked) //nolint:forbidigo // no request has been read yet
	if shed == nil {
		return 0, nil
	}
	r.RemoteAddr, body = c.RemoteAddr().String(), httpapi.OverloadedBody(shed)
	e.own.RefusedEarly(r, &req, received, len(body))
	return shed.RetryAfter, body
}

// watched returns a listener for clients that limits connections. For this server's own token
// endpoint, it also refuses token requests early.
func (e *edge) watched(l net.Listener) net.Listener {
	l = e.base.bounds.Clients.Listener(l)
	if e.base.isGateway() {
		return l
	}
	refuser := &earlyRefuser{e.base.overload.shedder, e.service, e.own, e.drainer}
	return early.New(l, early.Options{Path: e.own.TokenPath(), Refuser: refuser, IdleTimeout: e.http.IdleTimeout})
}

// track is the [http.Server].ConnState of the server for clients.
func (e *edge) track(c net.Conn, state http.ConnState) {
	e.drainer.track(c, state)
	connbound.TrackSilence(c, state)
	early.Track(c, state)
}
