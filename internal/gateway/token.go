package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
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

// MaxBody is the longest token request in bytes.
const MaxBody = 64 << 10

// bodyTimeout is how long a token request may take to come in.
const bodyTimeout = 15 * time.Second

// tokenCall is one token request on its way to the upstream and back.
type tokenCall struct {
	g       *Gateway
	said    tokenrequest.Request
	by      *judgement.Credentials // nil: no client is named
	user    string                 // whom it was reserved for; empty: not known, or there is none
	led     bool                   // the username or refresh token as it was sent has led to that user
	named   string                 // whom it is for, as SetUser says
	page    bool                   // a page of another site had a browser send it
	from    place
	turn    *judgement.Reservation // nil: it was not judged
	settled bool                   // or given back
	result  result
	out     *observed
}

type tokenCallKey struct{}

// token judges a token request and sends it on.
func (g *Gateway) token(w http.ResponseWriter, r *http.Request) {
	x, r := g.begin(w, r)
	defer func() { x.end(r) }()
	x.pass(x.out, r)
}

// begin returns a new tokenCall, and the request with an id for the log.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request) (*tokenCall, *http.Request) {
	x := &tokenCall{g: g, out: &observed{ResponseWriter: w}, result: result{started: time.Now()}}
	var proxied bool
	x.result.remote, proxied = g.o.ClientAddr(r)
	if !g.inside {
		r = accesslog.Identify(r, w.Header(), proxied)
	}
	return x, r
}

// pass reads, reserves and forwards.
func (x *tokenCall) pass(w http.ResponseWriter, r *http.Request) {
	g := x.g
	x.page = new(http.CrossOriginProtection).Check(r) != nil
	body, err := x.readBody(w, r)
	if err == nil {
		form := body
		if g.inside && len(body) == 0 { // an earlier handler may have parsed it
			form = []byte(r.PostForm.Encode())
		}
		var shown tokenrequest.Credentials
		x.said, shown, err = tokenrequest.ReadAll(r.Header, r.URL.RawQuery, form)
		x.said.ClientID = counted(x.said.ClientID)
		x.by = g.credentials(&x.said, &shown, x.result.remote)
	}
	if err != nil {
		x.refuse(w, r, err)
		return
	}
	if err := g.guarded(r.Context(), x.reserve); err != nil {
		x.limit(w, r, err)
		return
	}
	if err := r.Context().Err(); err != nil {
		x.unreachable(w, r, err)
		return
	}
	x.result.outcome = Failed // until it has a token
	if !g.inside {
		x.forward(w, r, body)
		return
	}
	lasting, end := x.lasting(r.Context())
	defer end()
	r = r.WithContext(context.WithValue(lasting, tokenCallKey{}, x))
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	a := &answer{ResponseWriter: w, x: x, ctx: r.Context()}
	g.next.ServeHTTP(a, r)
	a.finish()
}

// ErrTooLarge is the error of a request beyond [MaxBody].
var ErrTooLarge = errors.New("gateway: the request is too large")

// readBody reads the body of a request. In a server of others, it is for that to say how long it may take.
func (x *tokenCall) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	late := http.NewResponseController(w)
	if !x.g.inside {
		_ = late.SetReadDeadline(time.Now().Add(bodyTimeout)) // a connection that has none is one of a test
	}
	if r.ContentLength > MaxBody {
		return nil, ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, &tokenrequest.Error{Description: "The body of the request did not come in."}
	case len(body) > MaxBody:
		return nil, ErrTooLarge
	}
	if !x.g.inside {
		_ = late.SetReadDeadline(time.Time{})
	}
	return body, nil
}

// reserve asks the judge. Its error is *[grants.LimitedError].
func (x *tokenCall) reserve(ctx context.Context) error {
	if x.said.ClientID == "" { // the upstream is going to say so
		return nil
	}
	g, now := x.g, x.g.o.Now()
	x.from = g.underWay.take(now, x.said.ClientID, x.result.remote, x.page, g.o.Judge.Proven(x.by))
	if !x.from.taken && g.enforces(x.said.ClientID) {
		return errUnderWay
	}
	r := x.request(ctx, now)
	turn := g.o.Judge.Reserve(ctx, r)
	if turn.Crowded() {
		return errUnderWay
	}
	x.turn, x.user = &turn, r.Key.Username
	x.result.user, x.result.noUser, x.result.decision = x.user, r.Unknown, turn.Decision
	if turn.Rejected() {
		x.settled = true
		_, err := grants.Limited(r.Key, &turn.Decision)
		return err
	}
	return nil
}

// counted returns the client whose limits a client_id is under. Keys of counts that are no client's have a space in its place,
// so one in a client_id, which is allowed (RFC 6749 appendix A.1), counts as +. That is the name, too, for upstreams that do not
// decode HTTP Basic.
func counted(clientID string) string { return strings.ReplaceAll(clientID, " ", "+") }

// enforces reports whether requests of the client may be denied at all.
func (g *Gateway) enforces(clientID string) bool {
	e := g.o.Judge.Policies().For(clientID)
	return e.Mode == ratelimit.Enforce && !e.Trusted
}

// request returns what is judged: the best that is known of the request.
func (x *tokenCall) request(ctx context.Context, now time.Time) judgement.Request {
	r := judgement.Request{
		Key: ratelimit.Key{ClientID: x.said.ClientID}, Grant: clientcfg.Grant(x.said.Grant), Remote: x.result.remote, By: x.by,
	}
	digest, hasUser := leads(&x.said)
	if !hasUser {
		return r
	}
	user, known := x.g.o.Subjects.Get(now, digest, x.said.ClientID)
	if !known && x.said.Username == "" {
		user, known = x.g.o.Shared.Find(ctx, now, digest, x.said.ClientID, x.from.source)
	}
	x.led = known
	if !known && x.said.Username != "" {
		user, known = x.g.o.Subjects.Get(now, anyCase(&x.said), x.said.ClientID)
	}
	if !known {
		user = strings.TrimLeft(x.said.Username, " ") // a space begins keys of what is no user
		known = user != ""
	}
	r.Key.Username, r.Unknown = user, !known
	return r
}

// leads returns under what the user of a request is remembered, zero if under nothing, and whether it has one: every grant
// may, but for client_credentials.
func leads(said *tokenrequest.Request) (digest subject.Digest, hasUser bool) {
	switch {
	case said.Grant == string(clientcfg.ClientCredentials):
		return digest, false
	case said.Username != "":
		// No refresh token has a space, nor does a client that was counted. A memory has one entry of a digest, so that of a
		// username has its client in it.
		return subject.NameDigest("user " + said.ClientID + " " + said.Username), true
	}
	return subject.Digest(said.RefreshToken), true
}

// anyCase returns under what a username is remembered whatever the case of its letters and the space around it, which many
// servers ignore: the user would have one more request over the limit for each spelling. A spelling that has led to a user leads there first.
func anyCase(said *tokenrequest.Request) subject.Digest {
	return subject.NameDigest("user in any case " + said.ClientID + " " + strings.ToLower(strings.TrimSpace(said.Username)))
}

// SetUser says whom a token is for, in place of what the answer shows: while the request of that context is answered, by
// what answers it. It ignores what cannot be the name of a user.
func SetUser(ctx context.Context, user string) {
	if x, judged := ctx.Value(tokenCallKey{}).(*tokenCall); judged && subject.Fit(user) {
		x.named = user
	}
}

// count settles a request that got a token, on the user that the answer proves, and remembers who that is. If the
// introspection endpoint is asked for the user, the request is settled later, and the answer says what was reserved. The
// body is nil if it cannot be read.
func (x *tokenCall) count(ctx context.Context, body []byte) {
	g := x.g
	i := &issued{g: g, said: x.said, turn: x.turn, claims: g.reader.Read(body), followed: x.user != ""}
	user := x.proven(i)
	x.settled = true
	g.underWay.proven(&x.from)
	g.o.Judge.Prove(ctx, x.turn)
	d := x.turn.Decision
	if user != "" || !g.introspect(ctx, i, body) {
		d, x.result.late = i.settle(ctx, user)
	}
	x.result.user, x.result.decision = cmp.Or(user, x.user), d
	x.result.noUser = x.result.noUser && user == ""
	if fields, err := grants.Limited(ratelimit.Key{}, &d); err == nil {
		x.out.fields = fields
	}
}

// proven returns the user that the answer shows, or whom a request that got a token leads to; empty if that is not known, or
// there is none.
func (x *tokenCall) proven(i *issued) string {
	if _, i.hasUser = leads(&x.said); !i.hasUser {
		return ""
	}
	user := cmp.Or(x.named, i.claims.Subject)
	if user == "" && x.led {
		user, i.recalled = x.user, true
	}
	if user == "" && x.said.Username != "" {
		i.byName = x.user
	}
	return user
}

// letGo takes the request from those under way, and gives back what was reserved, unless that is settled. It is called before
// the answer is written, so that a client that does not read its answer takes no room, and one that does can ask again. Calls
// after the first do nothing.
func (x *tokenCall) letGo(ctx context.Context) {
	if x.turn != nil && !x.settled {
		x.settled = true
		_ = x.g.guarded(ctx, func(context.Context) error { // it gets its answer, whatever fails here
			if x.answered() {
				x.g.o.Judge.Refuse(x.turn, x.result.wrongSecret)
			} else {
				x.g.o.Judge.Cancel(x.turn)
			}
			return nil
		})
	}
	if x.from.taken {
		x.g.underWay.release(x.g.o.Now(), &x.from, x.answered() && (x.result.outcome == Gone || guessed(x.result.status, x.result.refusal)))
	}
}

// end calls letGo if that was not called, counts the request, and writes its line.
func (x *tokenCall) end(r *http.Request) {
	if x.turn != nil && !x.settled && x.result.outcome == Issued {
		x.result.outcome = Failed // its answer broke off before the client had anything of it
	}
	x.letGo(r.Context())
	x.g.counts.requests[x.result.outcome].Add(1)
	if !x.g.inside {
		x.log(r)
	}
	x.g.o.Answered(r.Context(), x.summary())
}

// answered reports whether the upstream answered that it gives no token, or the client did not wait for its answer: who
// guesses could hang up each time before it is refused.
func (x *tokenCall) answered() bool {
	refused := x.result.outcome == Failed && x.result.status != 0 && x.result.status < http.StatusInternalServerError
	return refused || x.result.outcome == Gone
}

// errNotJudged is the error of a request that the gateway failed to judge.
var errNotJudged = errors.New("gateway: the request could not be judged")

// guarded calls a part of the judgement. A defect in it, which would end the request, lets it pass, or denies it if
// OnError says so; the log has it in either case.
func (g *Gateway) guarded(ctx context.Context, judge func(context.Context) error) (err error) {
	defer func() {
		defect := recover()
		if defect == nil {
			return
		}
		g.o.Logger.LogAttrs(ctx, slog.LevelError, "a request could not be judged: this is a defect of the gateway",
			slog.String("on_error", string(g.o.OnError)), slog.Any("panic", defect), slog.String("stack", string(debug.Stack())))
		g.counts.defects.Add(1)
		if err = nil; g.o.OnError == Deny {
			err = errNotJudged
		}
	}()
	return judge(ctx)
}
