package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
)

// Outcome is what became of a token request at the gateway.
type Outcome string

// The values of Outcome.
const (
	Passed      Outcome = "passed"      // it reached the upstream, which answered
	Denied      Outcome = "denied"      // over a limit
	Refused     Outcome = "refused"     // the upstream could have read it differently
	Unreachable Outcome = "unreachable" // the upstream did not answer
	Gone        Outcome = "gone"        // the client has hung up
	Unjudged    Outcome = "unjudged"    // the gateway failed to judge it, and denied it
)

// Result is what became of a token request, for metrics and the log.
type Result struct {
	ClientID string // as the request says; not proven
	Grant    string // likewise
	Outcome  Outcome
	Status   int // of the upstream; 0: it did not answer
	// Known is set if it got a token, and whose that is was known, or it has no user.
	Known  bool
	Reason subject.Reason // why not
	// Late is set if the user had no room left, which the answer showed only.
	Late bool
}

// errUnderWay is the error of a request beyond the bounds of held.
var errUnderWay = errors.New("gateway: too many requests of the client are under way")

// limit answers a request that the judge has denied.
func (g *Gateway) limit(w http.ResponseWriter, r *http.Request, err error) Outcome {
	var limited *grants.LimitedError
	outcome := Denied
	switch {
	case errors.As(err, &limited):
		err = httpapi.WriteLimited(w, limited, g.o.LimitedCode())
	case errors.Is(err, errUnderWay):
		w.Header().Set("Retry-After", "1")
		err = httpapi.WriteError(w, http.StatusTooManyRequests, g.o.LimitedCode(), "Too many token requests of this client are under way from this address; retry after 1 second.")
	default:
		outcome = Unjudged
		err = httpapi.WriteError(w, http.StatusServiceUnavailable, grants.TemporarilyUnavailable, "The gateway cannot judge requests; try again later.")
	}
	g.wrote(r.Context(), err)
	return outcome
}

// refuse answers a request that is not sent to the upstream, because that could read it differently.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refused *tokenrequest.Error
	if errors.As(err, &refused) {
		g.wrote(r.Context(), httpapi.WriteError(w, http.StatusBadRequest, grants.InvalidRequest, refused.Description))
		return
	}
	w.Header().Set("Connection", "close") // the rest of it is not read
	g.wrote(r.Context(), httpapi.WriteError(w, http.StatusRequestEntityTooLarge, grants.InvalidRequest, "The request is longer than 64 KiB."))
}

// unreachable answers for an upstream that does not.
func (g *Gateway) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	outcome, status, description := Unreachable, http.StatusBadGateway, "The authorization server cannot be reached; try again later."
	var slow net.Error
	switch {
	case r.Context().Err() != nil:
		outcome = Gone
	case errors.As(err, &slow) && slow.Timeout():
		status, description = http.StatusGatewayTimeout, "The authorization server takes too long; try again later."
	}
	if x, judged := r.Context().Value(exchangeKey{}).(*exchange); judged {
		x.result.Outcome, x.result.Status = outcome, 0
	}
	level := slog.LevelWarn
	if outcome == Gone {
		level = slog.LevelDebug // nobody reads the answer
	}
	g.o.Logger.LogAttrs(r.Context(), level, "upstream does not answer", slog.String("path", r.URL.Path), slog.Any("error", err))
	g.wrote(r.Context(), httpapi.WriteError(w, status, grants.TemporarilyUnavailable, description))
}

// wrote logs that an answer could not be written.
func (g *Gateway) wrote(ctx context.Context, err error) {
	if err != nil {
		g.o.Logger.LogAttrs(ctx, slog.LevelDebug, "answer not written; the client has disconnected", slog.Any("error", err))
	}
}
