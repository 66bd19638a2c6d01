package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/admission"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi/early"
)

// RefusedEarly accounts for a token request that was refused before net/http read it, as for any other that is refused
// while the server is overloaded: by a line in the log or in the number of those without one, and by [Options].Answered.
func (s *Server) RefusedEarly(f *early.Refusal) {
	ctx := context.Background() // of a request there is none
	if s.shedLines.Next(ctx) {
		s.logEarly(f)
	}
	if s.o.Answered != nil {
		s.o.Answered(ctx, Answer{
			Route: "/token", Method: http.MethodPost, Status: http.StatusServiceUnavailable,
			GrantType: f.Request.Grant, Error: string(grants.TemporarilyUnavailable), Shed: admission.Processor, Duration: time.Since(f.Received),
		})
	}
}

// logEarly writes the line of a request. Only for that is the header read, which shows where the request came from.
func (s *Server) logEarly(f *early.Refusal) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(f.Raw)))
	if err != nil { // then the peer sent it, as far as is known
		r = &http.Request{Method: http.MethodPost, URL: &url.URL{}}
	}
	r.RemoteAddr = f.Remote.String()
	remote, trusted := s.addresses.Of(r)
	line := accesslog.Line{
		Route: s.base + "/token", Status: http.StatusServiceUnavailable, Bytes: int64(f.Sent), Started: f.Received, Remote: remote,
		Grant: f.Request.Grant, ClientID: f.Request.ClientID, Error: string(grants.TemporarilyUnavailable), Busy: true, Shed: string(admission.Processor),
	}
	line.Write(s.log, accesslog.Identify(r, http.Header{}, trusted))
}
