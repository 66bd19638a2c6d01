package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// errUnderWay is the error of a request that exceeds a limit of underWay, or that the Decider rejects
// as crowded.
var errUnderWay = errors.New("gateway: too many unanswered requests of the client")

// underWayLimit is the name of the underWay limits in the log.
const underWayLimit = "under_way"

// limit writes the answer to a request that was denied with err.
func (x *tokenCall) limit(w http.ResponseWriter, r *http.Request, err error) {
	var limited *oautherr.LimitedError
	code := x.g.o.LimitedCode()
	switch {
	case errors.As(err, &limited):
		x.note(Denied, code)
		answer := oautherr.AnswerTo(limited, code, "") // no error_uri: the paths belong to the upstream
		x.g.wrote(r.Context(), answer.Write(w, r.Header.Get("Origin")))
	case errors.Is(err, errUnderWay):
		w.Header().Set("Retry-After", "1")
		accesslog.NoteDenial(r.Context(), accesslog.Denial{Outcome: ratelimit.Denied.String(), Limit: underWayLimit})
		x.fail(w, r, Crowded, http.StatusTooManyRequests, code,
			"Too many token requests with unverified credentials of this client are in flight; retry after 1 second.")
	default:
		x.fail(w, r, Unchecked, http.StatusServiceUnavailable, oautherr.TemporarilyUnavailable, "The gateway cannot check requests; try again later.")
	}
}

// refuse answers a request that is not forwarded because the upstream might parse it differently,
// or because it is too large.
func (x *tokenCall) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refused *tokenrequest.Error
	if errors.As(err, &refused) {
		x.fail(w, r, Refused, http.StatusBadRequest, oautherr.InvalidRequest, refused.Description)
		return
	}
	w.Header().Set("Connection", "close") // the rest of the body is not read
	x.fail(w, r, Refused, http.StatusRequestEntityTooLarge, oautherr.InvalidRequest, "The request is longer than 64 KiB.")
}

// fail answers a token request with an error of the gateway.
func (x *tokenCall) fail(w http.ResponseWriter, r *http.Request, o Outcome, status int, code oautherr.Code, description string) {
	x.note(o, code)
	answer := oautherr.NewAnswer(status, code, description)
	x.g.wrote(r.Context(), answer.Write(w, r.Header.Get("Origin")))
}

// note records the outcome and error code of an answer that the gateway itself wrote.
func (x *tokenCall) note(o Outcome, code oautherr.Code) {
	x.result.Outcome, x.result.code = o, string(code)
}

// unreachable answers a token request that the upstream did not answer.
func (x *tokenCall) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	o, status, description := x.g.whyUnreachable(r, err)
	x.result.Outcome = o
	x.letGo(r.Context())
	x.fail(w, r, o, status, oautherr.TemporarilyUnavailable, description)
}

// unreachable answers a request to any other path that the upstream did not answer, and logs it.
func (g *Gateway) unreachable(w http.ResponseWriter, _ *http.Request, err error) {
	d := w.(*downstream) //nolint:forcetypeassert // see ServeHTTP
	x, r := g.begin(d, d.request)
	x.result.started = d.started
	if d.upload != nil && d.upload.late.Load() {
		d.Header().Set("Connection", "close") // the rest of the body is not read
		x.fail(x.out, r, Refused, http.StatusRequestTimeout, oautherr.InvalidRequest, "The request body arrives too slowly.")
		x.log(r)
		return
	}
	if errors.Is(err, ErrTooLarge) { // set by asksNear
		x.refuse(x.out, r, err)
		x.log(r)
		return
	}
	o, status, description := g.whyUnreachable(r, err)
	x.fail(x.out, r, o, status, oautherr.TemporarilyUnavailable, description)
	x.log(r)
}

// whyUnreachable logs why the upstream did not answer. It returns the outcome, and the status and
// description for the client.
func (g *Gateway) whyUnreachable(r *http.Request, err error) (o Outcome, status int, description string) {
	o, status, description = Unreachable, http.StatusBadGateway, "The authorization server cannot be reached; try again later."
	level := slog.LevelWarn
	var slow net.Error
	switch {
	case r.Context().Err() != nil:
		o, level = Gone, slog.LevelDebug // the client will not read the answer
	case errors.As(err, &slow) && slow.Timeout():
		status, description = http.StatusGatewayTimeout, "The authorization server takes too long; try again later."
	}
	g.o.Logger.LogAttrs(r.Context(), level, "upstream does not answer", slog.String("path", r.URL.Path), slog.Any("error", err))
	return o, status, description
}

// wrote logs err, if an answer could not be written.
func (g *Gateway) wrote(ctx context.Context, err error) {
	if err != nil {
		g.o.Logger.LogAttrs(ctx, slog.LevelDebug, "answer not written; client disconnected", slog.Any("error", err))
	}
}
