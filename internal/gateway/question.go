package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// Question holds the parts of a token request that a proxy knows.
type Question struct {
	// ClientID is empty if the request names no client. Such a request passes and is not counted.
	ClientID string
	// User is empty if it is unknown, or if there is no user. It is ignored for the grant
	// client_credentials.
	User   string
	Grant  string     // grant_type; empty: unknown
	Remote netip.Addr // client address; zero: unknown
	Hits   int        // the number of requests to count; 0: decide without counting

	// Decision is set by [Decider.Ask]. Zero: the limits were not checked.
	Decision ratelimit.Decision
}

// ReadQuestion returns the question of a token request from its header, its URL query and its body.
// The caller limits the body to [MaxBody]. It returns a [tokenrequest.Error] if servers might parse
// the request differently.
func ReadQuestion(header http.Header, query string, body []byte) (Question, error) {
	said, _, err := tokenrequest.Read(header, query, body)
	return Question{
		ClientID: said.ClientID, Grant: said.Grant, Hits: 1,
		User: strings.TrimLeft(said.Username, " "), // keys that start with a space are not users
	}, err
}

// Check returns a [tokenrequest.Error] if ClientID or User cannot be a valid name. Questions from
// [ReadQuestion] always pass it.
func (q *Question) Check() error {
	switch {
	case !subject.Fit(q.ClientID):
		return &tokenrequest.Error{Description: "client_id must be 1 to 255 bytes of text."}
	case q.User != "" && !subject.Fit(q.User):
		return &tokenrequest.Error{Description: "user must be up to 255 bytes of text, and not begin with a space."}
	}
	return nil
}

// request returns the request to check against the limits.
func (q *Question) request() limiter.Request {
	r := limiter.Request{
		Key: ratelimit.Key{ClientID: counted(q.ClientID)}, Grant: q.Grant, Remote: q.Remote, Unproven: true,
	}
	if r.Grant != clientCredentials {
		r.Key.Username, r.Unknown = q.User, q.User == ""
	}
	return r
}

// Answer tells a proxy what to do with a request.
type Answer struct {
	// Status is 200 if the request may pass. Otherwise Status, Header and Body are the answer to
	// send to the client.
	Status int
	// Header always has the RateLimit fields, with their exact capitals, unless they are hidden. It
	// also lets scripts of other sites read them.
	Header http.Header
	Body   []byte
	// Asked holds the questions with their decisions. It is nil if the questions could not be read.
	Asked []Question
}

// IsToken reports whether a request, as the client sent it, may be a token request, with the rules
// of a gateway: by method and path, and for a path near a token endpoint also by query and body.
// body is nil if it is unknown. Without TokenPaths, every path is a token endpoint.
func (d *Decider) IsToken(r *http.Request, body []byte) bool {
	unknown := body == nil && r.ContentLength != 0
	return d.g.isToken(r) || d.g.isNear(r) && (unknown || tokenrequest.MayAsk(r.Header, r.URL.RawQuery, body))
}

// Ask answers the questions that read returns. All of them belong to one request: if one is over a
// limit, none of them counts. read returns a [tokenrequest.Error] or [ErrTooLarge] to refuse the
// request. OnError decides after a panic in read. Ask logs the method, path and X-Request-Id of r.
// The answer allows scripts of r's Origin to read it, or scripts of any origin if there is none.
func (d *Decider) Ask(r *http.Request, read func() ([]Question, error)) Answer {
	w := &kept{header: http.Header{}}
	x := &tokenCall{g: d.g, out: &observed{ResponseWriter: w}, result: result{started: time.Now()}}
	r = accesslog.Identify(r, http.Header{}, true)
	asked := x.answer(r, read)
	return Answer{Status: x.out.status, Header: w.answer(), Body: w.body.Bytes(), Asked: asked}
}

// Defect logs and counts a panic in the caller, outside of [Decider.Ask].
func (d *Decider) Defect(ctx context.Context, panicked any) {
	_ = d.g.guarded(ctx, func(context.Context) error { panic(panicked) }) // the caller writes the answer
}

// kept is an [http.ResponseWriter] that stores the answer.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements [http.ResponseWriter]. observed stores the status.
func (k *kept) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

const exposeHeaders = "Access-Control-Expose-Headers"

// answer returns the fields for the client. It leaves out fields about the connection, and the
// request ID, which the proxy sets.
func (k *kept) answer() http.Header {
	names, fields := ratelimit.Fields(), http.Header{}
	for _, name := range []string{
		"Content-Type", "Cache-Control", "Retry-After", names.Limit, names.Policy, "Access-Control-Allow-Origin",
		"Access-Control-Allow-Credentials", exposeHeaders, "Vary",
	} {
		if values := k.header[name]; values != nil {
			fields[name] = values
		}
	}
	if fields[names.Limit] != nil && fields[exposeHeaders] == nil { // so a script that may read the answer of the token endpoint can read the fields
		fields[exposeHeaders] = []string{names.Limit + ", " + names.Policy}
	}
	return fields
}

// clientCredentials is the only grant without a user.
const clientCredentials = "client_credentials"

// admit counts the requests if all of them may pass. Otherwise it returns a *[oautherr.LimitedError].
// The answer shows the limit with the longest wait, or with the least room.
func (x *tokenCall) admit(ctx context.Context, asked []Question) error {
	var all []limiter.Weighted
	var at []int // the index of each in asked
	for i := range asked {
		if q := &asked[i]; q.ClientID != "" {
			all, at = append(all, limiter.Weighted{Request: q.request(), Hits: q.Hits}), append(at, i)
		}
	}
	x.noteQuestion(asked)
	if len(all) == 0 {
		return nil
	}
	decisions := x.g.o.Limiter.AdmitAll(ctx, all)
	shown := 0
	for i := range decisions {
		asked[at[i]].Decision = decisions[i]
		if worse(&decisions[i], &decisions[shown]) {
			shown = i
		}
	}
	x.result.Username, x.result.noUser, x.result.Decision = all[shown].Key.Username, all[shown].Unknown, decisions[shown]
	fields, err := oautherr.Of(all[shown].Key, &decisions[shown])
	x.out.fields = fields
	return err
}

// noteQuestion records the first question that names a client, or else the first question, for the
// log.
func (x *tokenCall) noteQuestion(asked []Question) {
	if len(asked) > 0 {
		q := &asked[max(0, slices.IndexFunc(asked, func(q Question) bool { return q.ClientID != "" }))]
		x.said.ClientID, x.said.Grant, x.result.remote = q.ClientID, q.Grant, q.Remote
	}
}

// worse reports whether decision a is worse for the client than b.
func worse(a, b *ratelimit.Decision) bool {
	switch {
	case a.Rejected() != b.Rejected():
		return a.Rejected()
	case a.Rejected():
		return a.RetryAfter > b.RetryAfter
	}
	return a.Usage() > b.Usage()
}
