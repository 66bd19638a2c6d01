package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"oauth-server/internal/httpapi/early"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/overload"
)

// RefusedEarly records a token request that was refused before net/http read it, in the same way as
// other requests that are refused under overload: it writes a log line, or counts the request among
// those without one, and calls [Options].Answered.
func (s *Server) RefusedEarly(f *early.Refusal) {
	ctx := context.Background() //nolint:forbidigo // there is no request context
	if s.shedLines.Next(ctx) {
		s.logEarly(f)
	}
	if s.o.Answered != nil {
		s.o.Answered(ctx, Answer{
			Route: "/token", Method: http.MethodPost, Status: http.StatusServiceUnavailable,
			GrantType: f.Request.Grant, Error: string(oautherr.TemporarilyUnavailable), Shed: overload.Processor, Duration: time.Since(f.Received),
		})
	}
}

// logEarly writes the access log line of a request. It parses the header, which contains the client
// address, only for this line.
func (s *Server) logEarly(f *early.Refusal) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(f.Raw)))
	if err != nil { // then the peer counts as the client
		r = &http.Request{Method: http.MethodPost, URL: &url.URL{}}
	}
	r.RemoteAddr = f.Remote.String()
	remote, trusted := s.addresses.Of(r)
	line := accesslog.Line{
		Route: s.base + "/token", Status: http.StatusServiceUnavailable, Bytes: int64(f.Sent), Started: f.Received, Remote: remote,
		Grant: f.Request.Grant, ClientID: f.Request.ClientID, Error: string(oautherr.TemporarilyUnavailable), Busy: true, Shed: string(overload.Processor),
	}
	line.Write(s.log, accesslog.Identify(r, http.Header{}, trusted))
}
