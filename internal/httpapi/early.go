package httpapi

import (
	"context"
	"net/http"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/overload"
)

// TokenPath returns the path of the token endpoint.
func (s *Server) TokenPath() string { return s.base + "/token" }

// ReadToken returns the token request with this body, as the endpoint would read it. It returns false
// if the endpoint would refuse it.
func ReadToken(r *http.Request, body string) (req grants.TokenRequest, ok bool) {
	if checkContentType(r.Header) != nil {
		return req, false
	}
	p, err := parseParams(body)
	if err != nil || p.once() != nil {
		return req, false
	}
	req, err = tokenRequest(r.Header, &p)
	return req, err == nil
}

// RefusedEarly records a token request that was refused, with a body of sent bytes, before net/http
// read it. It does so in the same way as for other requests that are refused under overload: it
// writes a log line, or counts the request among those without one, and calls [Options].Answered.
func (s *Server) RefusedEarly(r *http.Request, req *grants.TokenRequest, received time.Time, sent int) {
	ctx := context.Background() //nolint:forbidigo // there is no request context
	if s.shedLines.Next(ctx) {
		remote, trusted := s.o.Addresses.Of(r)
		line := accesslog.Line{
			Route: s.TokenPath(), Status: http.StatusServiceUnavailable, Bytes: int64(sent), Started: received, Remote: remote, Grant: req.GrantType,
			ClientID: req.Credentials.ClientID, Error: string(oautherr.TemporarilyUnavailable), Busy: true, Shed: string(overload.Processor),
		}
		line.Write(s.log, accesslog.Identify(r, http.Header{}, trusted))
	}
	if s.o.Answered != nil {
		s.o.Answered(ctx, Answer{
			Route: "/token", Method: http.MethodPost, Status: http.StatusServiceUnavailable,
			GrantType: req.GrantType, Error: string(oautherr.TemporarilyUnavailable), Shed: overload.Processor, Duration: time.Since(received),
		})
	}
}
