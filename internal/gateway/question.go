package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/grants"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
)

// Question is what a proxy knows of a token request.
type Question struct {
	// ClientID is empty if the request names no client: it passes, and is not counted.
	ClientID string
	// User is empty if it is not known, or there is none. It is ignored with the grant client_credentials.
	User   string
	Grant  string     // grant_type; empty: not known
	Remote netip.Addr // where the request comes from; zero: not known
	Hits   int        // as how many requests it counts; 0: it is decided and not counted

	// Decision is set by [Judge.Ask]; zero: the limits were not asked.
	Decision ratelimit.Decision
}

// ReadQuestion returns the question of a token request: its header, the query of its URL and its body, which the caller
// bounds by [MaxBody]. It errs with a [tokenrequest.Error] if servers could read the request differently.
func ReadQuestion(header http.Header, query string, body []byte) (Question, error) {
	said, err := tokenrequest.Read(header, query, body)
	return Question{
		ClientID: said.ClientID, Grant: said.Grant, Hits: 1,
		User: strings.TrimLeft(said.Username, " "), // a space begins keys of what is no user
	}, err
}

// Check returns a [tokenrequest.Error] for names that can be neither a client's nor a user's. Those of [ReadQuestion] can.
func (q *Question) Check() error {
	switch {
	case !subject.Fit(q.ClientID):
		return &tokenrequest.Error{Description: "client_id must be 1 to 255 bytes of text."}
	case q.User != "" && !subject.Fit(q.User):
		return &tokenrequest.Error{Description: "user must be up to 255 bytes of text, and not begin with a space."}
	}
	return nil
}

// request returns what is judged.
func (q *Question) request() judgement.Request {
	r := judgement.Request{
		Key: ratelimit.Key{ClientID: counted(q.ClientID)}, Grant: clientcfg.Grant(q.Grant), Remote: q.Remote, Unproven: true,
	}
	if r.Grant != clientcfg.ClientCredentials {
		r.Key.Username, r.Unknown = q.User, q.User == ""
	}
	return r
}

// Answer is what a proxy is to do with a request.
type Answer struct {
	// Status is 200 if the request may pass. Otherwise it is that of the answer to it, as are Header and Body.
	Status int
	// Header has the RateLimit fields in any case, with their capitals, unless they are hidden, and lets scripts of other sites
	// read them.
	Header http.Header
	Body   []byte
	// Asked are the questions with the decisions on them. It is nil if they could not be read.
	Asked []Question
}

// IsToken reports whether a request, as the client sent it, may be one of tokens, like at a gateway: by its method and its
// path, and near the path of a token endpoint by its query and body, which is nil if it is not known. Without TokenPaths,
// every path is one of a token endpoint.
func (j *Judge) IsToken(r *http.Request, body []byte) bool {
	unknown := body == nil && r.ContentLength != 0
	return j.g.isToken(r) || j.g.isNear(r) && (unknown || tokenrequest.MayAsk(r.Header, r.URL.RawQuery, body))
}

// Ask answers the questions that read returns, all of them about one request: if one is over a limit, none of them
// counts. read returns a [tokenrequest.Error] or [ErrTooLarge] for what is refused. A panic in it is a defect of the
// judgement, which OnError decides on. r is logged: the method, the path, and the id in its X-Request-Id. Scripts of its
// Origin, or of any if it has none, may read the answer.
func (j *Judge) Ask(r *http.Request, read func() ([]Question, error)) Answer {
	w := &kept{header: http.Header{}}
	x := &tokenCall{g: j.g, out: &observed{ResponseWriter: w}, result: result{started: time.Now()}}
	r = accesslog.Identify(r, http.Header{}, true)
	asked := x.answer(r, read)
	return Answer{Status: x.out.status, Header: w.answer(), Body: w.body.Bytes(), Asked: asked}
}

// Defect logs and counts a panic of who asks, outside of [Judge.Ask].
func (j *Judge) Defect(ctx context.Context, panicked any) {
	_ = j.g.guarded(ctx, func(context.Context) error { panic(panicked) }) // the caller answers
}

// kept keeps an answer.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements [http.ResponseWriter]; observed has the status.
func (k *kept) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

const exposeHeaders = "Access-Control-Expose-Headers"

// answer returns the fields that are the client's: none about the connection, and no id, which its proxy gives.
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
	if fields[names.Limit] != nil && fields[exposeHeaders] == nil { // for a script that may read the answer of the token endpoint
		fields[exposeHeaders] = []string{names.Limit + ", " + names.Policy}
	}
	return fields
}

// admit counts the requests, if all of them may pass. Its error is *[grants.LimitedError]. The answer shows the limit
// that keeps the client waiting longest, or has the least room.
func (x *tokenCall) admit(ctx context.Context, asked []Question) error {
	var all []judgement.Weighted
	var at []int // of each in asked
	for i := range asked {
		if q := &asked[i]; q.ClientID != "" {
			all, at = append(all, judgement.Weighted{Request: q.request(), Hits: q.Hits}), append(at, i)
		}
	}
	x.noteQuestion(asked)
	if len(all) == 0 {
		return nil
	}
	decisions := x.g.o.Judge.AdmitAll(ctx, all)
	shown := 0
	for i := range decisions {
		asked[at[i]].Decision = decisions[i]
		if worse(&decisions[i], &decisions[shown]) {
			shown = i
		}
	}
	x.result.user, x.result.noUser, x.result.decision = all[shown].Key.Username, all[shown].Unknown, decisions[shown]
	fields, err := grants.Limited(all[shown].Key, &decisions[shown])
	x.out.fields = fields
	return err
}

// noteQuestion notes for the log what the request says: the first question that names a client, or else the first.
func (x *tokenCall) noteQuestion(asked []Question) {
	if len(asked) > 0 {
		q := &asked[max(0, slices.IndexFunc(asked, func(q Question) bool { return q.ClientID != "" }))]
		x.said.ClientID, x.said.Grant, x.result.remote = q.ClientID, q.Grant, q.Remote
	}
}

// worse reports whether a decision is worse than another one, for the client.
func worse(a, b *ratelimit.Decision) bool {
	switch {
	case a.Rejected() != b.Rejected():
		return a.Rejected()
	case a.Rejected():
		return a.RetryAfter > b.RetryAfter
	}
	return a.Usage() > b.Usage()
}
