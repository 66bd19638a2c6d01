package gateway

import (
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// Outcome is the result of a token request at the gateway.
type Outcome uint8

// The values of Outcome.
const (
	Issued      Outcome = iota // the upstream answered with a token
	Failed                     // the upstream answered with something else
	Denied                     // the request was over a limit
	Crowded                    // too many requests of the unproven client are in progress
	Refused                    // the request is for another host, or the upstream might parse it differently
	Unreachable                // the upstream did not answer
	Gone                       // the client hung up; a token that the upstream issued still counts
	Unchecked                  // the gateway failed to check the request, and denied it
	Passed                     // a Decider let it pass and does not see the answer

	// Outcomes is the number of outcomes.
	Outcomes = iota
)

var outcomeNames = [Outcomes]string{"issued", "failed", "denied", "crowded", "refused", "unreachable", "gone", "unjudged", "passed"}

func (o Outcome) String() string { return outcomeNames[o] }

// Stats are the counters of a gateway since its start.
type Stats struct {
	Requests [Outcomes]uint64 // token requests
	// Unknown is the number of tokens issued without a user in the answer, by reason.
	Unknown map[subject.Reason]uint64
	// Late is the number of tokens issued for a user already at their limit, where only the answer
	// showed the user.
	Late uint64
	// Defects is the number of requests that the gateway failed to check.
	Defects  uint64
	UnderWay int // requests that wait for the upstream
	Subjects int // refresh tokens and usernames with a known user
}

// counts holds the counters of Stats.
type counts struct {
	requests [Outcomes]atomic.Uint64
	unknown  []atomic.Uint64 // by Reason
	late     atomic.Uint64
	defects  atomic.Uint64
}

// Stats returns the current counters.
func (g *Gateway) Stats() Stats {
	s := Stats{
		Unknown: map[subject.Reason]uint64{}, Late: g.counts.late.Load(), Defects: g.counts.defects.Load(),
		UnderWay: g.underWay.len(), Subjects: g.o.Subjects.Len(),
	}
	for o := range s.Requests {
		s.Requests[o] = g.counts.requests[o].Load()
	}
	for _, r := range subject.Reasons() {
		s.Unknown[r] = g.counts.unknown[r].Load()
	}
	return s
}

// Result describes one token request, for [Options].Answered.
type Result struct {
	ClientID, Grant string // as sent; proven only by a token
	Username        string // the user it counts against, or would have; empty: unknown or no user
	Outcome         Outcome
	Status          int                // of the answer; 0: no answer
	Decision        ratelimit.Decision // zero: the limits were not checked
	Late            bool               // the user was already at their limit, which only the answer showed
	Took            time.Duration      // from the header of the request to the end of the answer
}

// result is a [Result] in the making, with what only the gateway needs. Its Status is that of the
// upstream; 0: none yet.
type result struct {
	Result
	code    string // the OAuth error of the gateway's own answer
	refusal string // the OAuth error of an upstream answer without a token
	// wrongSecret is set if refusal means that the client's secret is wrong.
	wrongSecret bool
	started     time.Time
	remote      netip.Addr
	noUser      bool // the request has a user, but was checked without knowing it
}

// conclude counts, logs and reports a request after its answer.
func (x *tokenCall) conclude(r *http.Request) {
	x.g.counts.requests[x.result.Outcome].Add(1)
	if !x.g.inside {
		x.log(r)
	}
	done := x.result.Result
	done.ClientID, done.Grant, done.Status, done.Took = x.said.ClientID, x.said.Grant, x.out.status, time.Since(x.result.started)
	x.g.o.Answered(r.Context(), done)
}

// observed is a writer that records the status and size of the answer.
type observed struct {
	http.ResponseWriter
	status int
	bytes  int64
	fields oautherr.RateLimit // fields to add, with their exact capitals, which no proxy keeps
}

// WriteHeader implements [http.ResponseWriter].
func (o *observed) WriteHeader(status int) {
	if o.status < http.StatusOK { // no status yet, or an interim one
		o.status = status
	}
	if status >= http.StatusOK {
		o.fields.Add(o.Header())
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (o *observed) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	n, err := o.ResponseWriter.Write(b)
	o.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// log writes the access log line of a token request. The client and the grant are as sent, not
// verified.
func (x *tokenCall) log(r *http.Request) {
	line := accesslog.Line{
		Status: x.out.status, Bytes: x.out.bytes, Started: x.result.started, Remote: x.result.remote,
		Grant: x.said.Grant, ClientID: x.said.ClientID, Error: x.result.code,
		NoUser: x.result.noUser, Gone: r.Context().Err() != nil,
	}
	line.Write(x.g.o.Logger, r)
}
