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
	"sync/atomic"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// MaxBody is the maximum size of a token request in bytes.
const MaxBody = 64 << 10

// bodyTimeout bounds the time to receive a token request.
const bodyTimeout = 15 * time.Second

// tokenCall is one token request on its way to the upstream and back.
type tokenCall struct {
	g           *Gateway
	said        tokenrequest.Request
	by          *limiter.Credentials // nil: the request names no client
	user        string               // the user of the reservation; empty: unknown or no user
	led         bool                 // the username as sent, or the refresh token, led to that user
	named       string               // the user from SetUser
	page        bool                 // a browser sent it for a page of another site
	from        place
	reservation *limiter.Reservation // nil: the limits were not checked
	settled     bool                 // settled or canceled
	gone        bool                 // the client has hung up before the answer
	lasts       atomic.Int32         // 1: it outlives its client; -1: it cannot (again)
	result      result
	out         *observed
}

type tokenCallKey struct{}

// token checks a token request against the limits and forwards it.
func (g *Gateway) token(w http.ResponseWriter, r *http.Request) {
	x, r := g.begin(w, r)
	defer func() {
		x.over()
		x.end(r)
	}()
	x.pass(x.out, r)
}

// begin returns a new tokenCall, and the request with an ID for the log.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request) (*tokenCall, *http.Request) {
	x := &tokenCall{g: g, out: &observed{ResponseWriter: w}, result: result{started: time.Now()}}
	var proxied bool
	x.result.remote, proxied = g.o.ClientAddr(r)
	if !g.inside {
		r = accesslog.Identify(r, w.Header(), proxied)
	}
	return x, r
}

// pass parses the request, reserves it and forwards it.
func (x *tokenCall) pass(w http.ResponseWriter, r *http.Request) {
	g := x.g
	x.page = new(http.CrossOriginProtection).Check(r) != nil
	body, err := x.readBody(w, r)
	if err == nil {
		form := body
		if g.inside && len(body) == 0 { // an earlier handler may have parsed the body
			form = []byte(r.PostForm.Encode())
		}
		var shown tokenrequest.Credentials
		x.said, shown, err = tokenrequest.Read(r.Header, r.URL.RawQuery, form)
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
	if !x.from.taken {
		x.over() // nothing counts it
	}
	x.result.Outcome = Failed // until a token is issued
	if g.inside {
		x.serve(w, r, body)
	} else if err := x.forward(w, r, body); err != nil {
		x.unreachable(w, r, err)
	}
}

// serve passes the request to the handler behind the middleware.
func (x *tokenCall) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	lasting, end := x.lasting(r.Context())
	defer end()
	a := &answer{ResponseWriter: w, x: x, ctx: lasting}
	r = r.WithContext(context.WithValue(lasting, tokenCallKey{}, x))
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	x.g.next.ServeHTTP(a, r)
	a.finish()
}

// ErrTooLarge is the error of a request larger than [MaxBody].
var ErrTooLarge = errors.New("gateway: the request is too large")

// readBody reads the body of a request. For a middleware, the surrounding server sets the read
// deadline.
func (x *tokenCall) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	late := http.NewResponseController(w)
	if !x.g.inside {
		_ = late.SetReadDeadline(time.Now().Add(bodyTimeout)) // fails only in tests
	}
	if r.ContentLength > MaxBody {
		return nil, ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, &tokenrequest.Error{Description: "The request body did not arrive."}
	case len(body) > MaxBody:
		return nil, ErrTooLarge
	}
	if !x.g.inside {
		_ = late.SetReadDeadline(time.Time{})
	}
	return body, nil
}

// reserve reserves the request in the limits. It returns a *[oautherr.LimitedError] or errUnderWay if
// the request is denied.
func (x *tokenCall) reserve(ctx context.Context) error {
	if x.said.ClientID == "" { // the upstream will report the error
		return nil
	}
	g, now := x.g, x.g.o.Now()
	x.from = g.underWay.take(now, x.said.ClientID, x.result.remote, x.page, g.o.Limiter.Proven(x.by))
	if !x.from.taken && g.enforces(x.said.ClientID) {
		return errUnderWay
	}
	r := x.request(ctx, now)
	reservation := g.o.Limiter.Reserve(ctx, r)
	if reservation.Crowded() {
		return errUnderWay
	}
	x.reservation, x.user = &reservation, r.Key.Username
	x.result.Username, x.result.noUser, x.result.Decision = x.user, r.Unknown, reservation.Decision
	if reservation.Rejected() {
		x.settled = true
		_, err := oautherr.Of(r.Key, &reservation.Decision)
		return err
	}
	return nil
}

// counted returns the client name that a client_id counts under. Internal keys contain a space
// where a client has none, so a space in a client_id, which RFC 6749 appendix A.1 allows, counts as
// +. Upstreams that do not decode HTTP Basic also use that name.
func counted(clientID string) string { return strings.ReplaceAll(clientID, " ", "+") }

// enforces reports whether the limits may deny requests of the client.
func (g *Gateway) enforces(clientID string) bool {
	e := g.o.Limiter.Policies().For(clientID)
	return e.Mode == ratelimit.Enforce && !e.Trusted
}

// request returns the request to check, with everything known about it.
func (x *tokenCall) request(ctx context.Context, now time.Time) limiter.Request {
	r := limiter.Request{
		Key: ratelimit.Key{ClientID: x.said.ClientID}, Grant: x.said.Grant, Remote: x.result.remote, By: x.by,
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
		user = strings.TrimLeft(x.said.Username, " ") // keys that start with a space are not users
		known = user != ""
	}
	r.Key.Username, r.Unknown = user, !known
	return r
}

// leads returns the digest that the user of a request is stored under, or zero if there is no user.
// hasUser is false for client_credentials, because only that grant has no user.
func leads(said *tokenrequest.Request) (digest subject.Digest, hasUser bool) {
	switch {
	case said.Grant == clientCredentials:
		return digest, false
	case said.Username != "":
		// Refresh tokens and counted client names contain no space, so the digests cannot collide.
		// A memory has one entry for each digest, so the digest of a username includes the client.
		return subject.NameDigest("user " + said.ClientID + " " + said.Username), true
	}
	return said.RefreshToken, true
}

// anyCase returns a digest of the username in lower case, without surrounding space. Many servers
// ignore both, so a user would otherwise get one more request over the limit for each spelling. A
// spelling that has led to a user before has priority.
func anyCase(said *tokenrequest.Request) subject.Digest {
	return subject.NameDigest("user in any case " + said.ClientID + " " + strings.ToLower(strings.TrimSpace(said.Username)))
}

// SetUser sets the user of the token that is being issued, in place of the user in the answer. The
// handler of the request calls it with the context of the request. It ignores names that cannot be
// users.
func SetUser(ctx context.Context, user string) {
	if x, is := ctx.Value(tokenCallKey{}).(*tokenCall); is && subject.Fit(user) {
		x.named = user
	}
}

// count settles a request that got a token, against the user in the answer, and remembers the user.
// If the user must be introspected, the request is settled later, and the answer shows the reserved
// decision.
func (x *tokenCall) count(ctx context.Context, a *subject.Answer) {
	g := x.g
	i := &issued{g: g, said: x.said, reservation: x.reservation, answer: *a, followed: x.user != ""}
	user := x.proven(i)
	x.settled = true
	g.underWay.proven(&x.from)
	g.o.Limiter.Prove(ctx, x.reservation)
	d := x.reservation.Decision
	if user != "" || !g.introspect(ctx, i) {
		d, x.result.Late = i.settle(ctx, user)
	}
	x.result.Username, x.result.Decision = cmp.Or(user, x.user), d
	x.result.noUser = x.result.noUser && user == ""
	if fields, err := oautherr.Of(ratelimit.Key{}, &d); err == nil {
		x.out.fields = fields
	}
}

// proven returns the user that the answer shows, or the user that the request led to. It is empty
// if the user is unknown, or if there is no user.
func (x *tokenCall) proven(i *issued) string {
	if _, i.hasUser = leads(&x.said); !i.hasUser {
		return ""
	}
	user := cmp.Or(x.named, i.answer.Subject)
	if user == "" && x.led {
		user, i.recalled = x.user, true
	}
	if user == "" && x.said.Username != "" {
		i.byName = x.user
	}
	return user
}

// letGo removes the request from those under way, and cancels the reservation unless it is settled.
// It is called before the answer is written, so a client that does not read its answer takes no
// slot, and a client that does read it can send its next request. Further calls do nothing.
func (x *tokenCall) letGo(ctx context.Context) {
	if x.reservation != nil && !x.settled {
		x.settled = true
		_ = x.g.guarded(ctx, func(context.Context) error { // the client gets its answer even if this fails
			if x.answered() {
				x.g.o.Limiter.Refuse(x.reservation, x.result.wrongSecret)
			} else {
				x.g.o.Limiter.Cancel(x.reservation)
			}
			return nil
		})
	}
	if x.from.taken {
		x.g.underWay.release(x.g.o.Now(), &x.from, x.answered() && (x.result.Outcome == Gone || guessed(x.result.Status, x.result.refusal)))
	}
}

// end calls letGo in case it was not called before, counts the request, and logs it.
func (x *tokenCall) end(r *http.Request) {
	if x.reservation != nil && !x.settled && x.result.Outcome == Issued {
		x.result.Outcome = Failed // the answer broke off before anything was written
	}
	x.letGo(r.Context())
	if x.gone {
		x.result.Outcome = Gone // but its token counts
	}
	x.conclude(r)
}

// answered reports whether the upstream answered without a token, or the client hung up. A hung-up
// client counts because someone who guesses secrets could hang up before each refusal.
func (x *tokenCall) answered() bool {
	refused := x.result.Outcome == Failed && x.result.Status != 0 && x.result.Status < http.StatusInternalServerError
	return refused || x.result.Outcome == Gone
}

// errUnchecked is the error of a request that the gateway failed to check.
var errUnchecked = errors.New("gateway: the request could not be checked")

// guarded calls check, a part of the limit checks, and recovers from a panic in it. It logs the
// panic. Then the request passes, or is denied if OnError is Deny.
func (g *Gateway) guarded(ctx context.Context, check func(context.Context) error) (err error) {
	defer func() {
		defect := recover()
		if defect == nil {
			return
		}
		g.o.Logger.LogAttrs(ctx, slog.LevelError, "request could not be checked; this is a bug in the gateway",
			slog.String("on_error", string(g.o.OnError)), slog.Any("panic", defect), slog.String("stack", string(debug.Stack())))
		g.counts.defects.Add(1)
		if err = nil; g.o.OnError == Deny {
			err = errUnchecked
		}
	}()
	return check(ctx)
}
