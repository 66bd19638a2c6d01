package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// The maximum number of concurrent introspection requests, and of queued ones.
const (
	introspectedAtOnce    = 64
	introspectionsWaiting = 1024
)

// failuresLoggedEvery is the minimum interval between logged introspection failures.
const failuresLoggedEvery = time.Minute

// introspections looks up the users of tokens, after the client has its answer.
type introspections struct {
	client  Introspection
	room    chan struct{}   // a slot for each request that is queued or running
	running chan struct{}   // a slot for each request that is running
	life    context.Context // the context of all requests
	end     context.CancelFunc
	all     sync.WaitGroup

	mu      sync.Mutex
	stopped bool // no new requests are accepted
	logged  time.Time
	failed  int // since the last log line
}

func newIntrospections(client Introspection) *introspections {
	q := &introspections{
		client: client, room: make(chan struct{}, introspectedAtOnce+introspectionsWaiting), running: make(chan struct{}, introspectedAtOnce),
	}
	q.life, q.end = context.WithCancel(context.Background()) //nolint:forbidigo // ends with the gateway
	return q
}

// introspect starts a lookup of the user of a token if the answer shows none, and reports whether
// it did. If so, the request is settled when the endpoint has answered. It starts no lookup if the
// user does not matter, or if too many lookups are queued.
func (g *Gateway) introspect(ctx context.Context, i *issued) bool {
	q, outcome := g.asking, i.reservation.Outcome
	if q == nil || !i.hasUser || outcome == ratelimit.Passed || outcome == ratelimit.Trusted {
		return false
	}
	token := i.answer.AccessToken()
	if token == "" {
		return false
	}
	if !q.begin() {
		i.answer.Reason = subject.IntrospectionBusy
		return false
	}
	ctx = accesslog.Detach(ctx, q.life)
	go func() {
		defer q.done()
		_ = g.guarded(ctx, func(ctx context.Context) error { // the token is issued even if this fails
			var user string
			user, i.answer.Reason = g.ask(ctx, token)
			i.settle(context.WithoutCancel(ctx), user)
			return nil
		})
	}()
	return true
}

// ask waits for a free slot and asks the endpoint for the user of a token.
func (g *Gateway) ask(ctx context.Context, token string) (user string, reason subject.Reason) {
	q := g.asking
	select {
	case q.running <- struct{}{}:
		defer func() { <-q.running }()
	case <-ctx.Done():
		return "", subject.IntrospectionFailed
	}
	user, reason, err := q.client.User(ctx, token)
	if n := q.failures(g.o.Now(), err); n > 0 {
		g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "introspection failed; tokens count for no user", slog.Int("failed", n), slog.Any("error", err))
	}
	return user, reason
}

// begin takes a slot. It reports false if all slots are taken. done returns the slot.
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

// failures counts a failure if err is not nil. If it is time to log, it returns the number of
// failures since the last log line, otherwise 0.
func (q *introspections) failures(now time.Time, err error) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil || q.life.Err() != nil { // after a stop, the stop caused the error
		return 0
	}
	q.failed++
	if !q.logged.IsZero() && now.Sub(q.logged) < failuresLoggedEvery {
		return 0
	}
	n, q.failed, q.logged = q.failed, 0, now
	return n
}

// Stop waits until all current token requests are counted, including requests whose clients have
// hung up and introspection lookups. It starts no new lookups. When ctx ends, it cancels the
// remaining lookups, and their requests count without a user. It returns nil.
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

// checkIntrospection introspects a token that does not exist, to detect a wrong URL or secret at
// startup.
func (g *Gateway) checkIntrospection(ctx context.Context) {
	if g.asking == nil {
		return
	}
	if _, _, err := g.asking.client.User(ctx, rand.Text()); err != nil && ctx.Err() == nil {
		g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "introspection does not work; tokens without a visible user count for no user", slog.Any("error", err))
	}
}
