package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/upstream"
	"oauth-server/internal/ratelimit"
)

// How many users are asked for at once, and how many questions may wait for that.
const (
	introspectedAtOnce    = 64
	introspectionsWaiting = 1024
)

// failuresLoggedEvery is how often failures of the introspection endpoint are logged at most.
const failuresLoggedEvery = time.Minute

// introspections asks for the users of tokens, after their answers.
type introspections struct {
	client *introspection.Client
	room   chan struct{}   // a place for each that waits or is under way
	turns  chan struct{}   // a place for each that is under way
	life   context.Context // of all of them
	end    context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	stopped bool // there are no more
	logged  time.Time
	failed  int // since it was logged
}

func newIntrospections(e introspection.Endpoint, reader *subject.Reader) (*introspections, error) {
	client, err := introspection.New(e, upstream.New(e.URL, upstream.Options{}), reader)
	if err != nil {
		return nil, err
	}
	q := &introspections{
		client: client, room: make(chan struct{}, introspectedAtOnce+introspectionsWaiting), turns: make(chan struct{}, introspectedAtOnce),
	}
	q.life, q.end = context.WithCancel(context.Background())
	return q, nil
}

// introspect has the endpoint asked for the user of a token whose answer shows none, and reports whether it is: the request
// is settled then when the endpoint has answered. It is not where the user is of no use, or there are too many questions.
func (g *Gateway) introspect(ctx context.Context, i *issued, body []byte) bool {
	q, outcome := g.asking, i.turn.Outcome
	if q == nil || !i.hasUser || outcome == ratelimit.Passed || outcome == ratelimit.Trusted {
		return false
	}
	token := subject.AccessToken(body)
	if token == "" {
		return false
	}
	if !q.begin() {
		i.claims.Reason = subject.IntrospectionBusy
		return false
	}
	ctx = accesslog.Detach(ctx, q.life)
	go func() {
		defer q.done()
		_ = g.guarded(ctx, func(ctx context.Context) error { // the token is issued, whatever fails here
			var user string
			user, i.claims.Reason = g.ask(ctx, token)
			i.settle(context.WithoutCancel(ctx), user)
			return nil
		})
	}()
	return true
}

// ask asks the endpoint when it is the turn of the question.
func (g *Gateway) ask(ctx context.Context, token string) (user string, reason subject.Reason) {
	q := g.asking
	select {
	case q.turns <- struct{}{}:
		defer func() { <-q.turns }()
	case <-ctx.Done():
		return "", subject.IntrospectionFailed
	}
	user, reason, err := q.client.User(ctx, token)
	if n := q.failures(g.o.Now(), err); n > 0 {
		g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "introspection failed; tokens count for no user", slog.Int("failed", n), slog.Any("error", err))
	}
	return user, reason
}

// begin takes a place for one more, which done gives back, and reports false if there is none.
func (q *introspections) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return false
	}
	select {
	case q.room <- struct{}{}:
		q.all.Add(1)
		return true
	default:
		return false
	}
}

func (q *introspections) done() {
	<-q.room
	q.all.Done()
}

// failures counts a failure, if there is an error, and returns how many there were since they were logged, if they are to
// be logged now, and otherwise 0.
func (q *introspections) failures(now time.Time, err error) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil || q.life.Err() != nil { // in the second case it is the stop that failed it
		return 0
	}
	q.failed++
	if !q.logged.IsZero() && now.Sub(q.logged) < failuresLoggedEvery {
		return 0
	}
	n, q.failed, q.logged = q.failed, 0, now
	return n
}

// Stop waits for the token requests that are under way, also those whose clients have hung up, and for the users who are
// asked for, to have all of them counted. It has no more users asked for. At the end of ctx it gives them up: requests that
// wait for a user count for none. It returns nil.
func (g *Gateway) Stop(ctx context.Context) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for g.underWay.len() > 0 && ctx.Err() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
	q := g.asking
	if q == nil {
		return nil
	}
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	defer q.end()
	defer context.AfterFunc(ctx, q.end)()
	q.all.Wait()
	return nil
}

// checkIntrospection asks the endpoint for a token that does not exist, so that a wrong URL or secret is noticed at the start.
func (g *Gateway) checkIntrospection(ctx context.Context) {
	if g.asking == nil {
		return
	}
	if _, _, err := g.asking.client.User(ctx, rand.Text()); err != nil && ctx.Err() == nil {
		g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "introspection fails: tokens that show no user will count for none", slog.Any("error", err))
	}
}
