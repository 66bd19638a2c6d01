package gateway

import (
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/ratelimit"
)

// Outcome is what became of a token request at the gateway.
type Outcome uint8

// The values of Outcome.
const (
	Issued      Outcome = iota // the upstream answered with a token
	Failed                     // the upstream answered with something else
	Denied                     // over a limit
	Crowded                    // too many of the client that is not proven are under way
	Refused                    // it is for another host, or the upstream could have read it differently
	Unreachable                // the upstream did not answer
	Gone                       // the client has hung up; a token that the upstream made counts all the same
	Unjudged                   // the gateway failed to judge it, and denied it
	Passed                     // a Judge let it pass, which sees no more of it

	// Outcomes is how many there are.
	Outcomes = iota
)

var outcomeNames = [Outcomes]string{"issued", "failed", "denied", "crowded", "refused", "unreachable", "gone", "unjudged", "passed"}

func (o Outcome) String() string { return outcomeNames[o] }

// Stats are what a gateway has done since its start.
type Stats struct {
	Requests [Outcomes]uint64 // of tokens
	// Unknown is how many tokens were issued for a user whom the answer did not show, by why.
	Unknown map[subject.Reason]uint64
	// Late is how many were issued for users without room, which only the answer showed.
	Late uint64
	// Defects is how often a request could not be judged.
	Defects  uint64
	UnderWay int // requests of which the upstream has not answered
	Subjects int // refresh tokens and usernames that are known by their user
}

// counts are Stats while they are counted.
type counts struct {
	requests [Outcomes]atomic.Uint64
	unknown  []atomic.Uint64 // by Reason
	late     atomic.Uint64
	defects  atomic.Uint64
}

// Stats returns what the gateway has done.
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

// result is what became of one token request.
type result struct {
	outcome Outcome
	status  int    // of the upstream; 0: none yet
	code    string // the OAuth error of an answer of the gateway
	refusal string // that of an answer of the upstream without a token
	// wrongSecret is set if that says that the secret of the client is wrong.
	wrongSecret bool
	started     time.Time
	remote      netip.Addr
	// user is whom the request counts against, or would have; empty: not known, or there is none.
	user     string
	noUser   bool               // it is for a user, and was judged without knowing for whom
	decision ratelimit.Decision // zero: the limits were not asked
	late     bool               // its user had no room left, which the answer showed only
}

// Result is what became of one token request, for [Options].Answered.
type Result struct {
	ClientID, Grant string // as the request says; proven only by a token
	Username        string // whom it counts against, or would have; empty: not known, or there is none
	Outcome         Outcome
	Status          int                // of the answer; 0: there is none
	Decision        ratelimit.Decision // zero: the limits were not asked
	Late            bool               // its user had no room left, which the answer showed only
	Took            time.Duration      // from its header to the end of the answer
}

// summary returns what became of the request.
func (x *tokenCall) summary() Result {
	return Result{
		ClientID: x.said.ClientID, Grant: x.said.Grant, Username: x.result.user,
		Outcome: x.result.outcome, Status: x.out.status, Decision: x.result.decision, Late: x.result.late,
		Took: time.Since(x.result.started),
	}
}

// observed is a writer that knows what was answered.
type observed struct {
	http.ResponseWriter
	status int
	bytes  int64
	fields grants.RateLimit // to be added, with their capitals, which no proxy keeps
}

// WriteHeader implements [http.ResponseWriter].
func (o *observed) WriteHeader(status int) {
	if o.status < http.StatusOK { // none yet, or an interim one
		o.status = status
	}
	if status >= http.StatusOK {
		httpapi.SetRateLimit(o.Header(), o.fields)
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

// log writes the line of a token request. Its client and its grant are as sent, not verified.
func (x *tokenCall) log(r *http.Request) {
	line := accesslog.Line{
		Status: x.out.status, Bytes: x.out.bytes, Started: x.result.started, Remote: x.result.remote,
		Grant: x.said.Grant, ClientID: x.said.ClientID, Error: x.result.code,
		NoUser: x.result.noUser, Gone: r.Context().Err() != nil,
	}
	line.Write(x.g.o.Logger, r)
}
