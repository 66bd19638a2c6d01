package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/mongotest"
)

// slowCall is how long each command takes while the database is slow.
const slowCall = 2 * time.Second

// dependent is a server whose database a test makes slow or takes away, with refresh tokens of its own.
type dependent struct {
	*cluster
	*member
	tb     testing.TB
	tokens []string
}

const dependentConfig = unlimited + "passwords: { sign_ins_per_minute: 1000000 }\ntokens: { refresh_grace: 10m }\n" +
	"overload: { target: 1s, max_in_flight: 12 }\n" // only the queue before the store refuses

// newDependent starts a server that has so many connections to its database, and n refresh tokens.
func newDependent(tb testing.TB, config, connections string, n int) *dependent {
	tb.Helper()
	c := newCluster(tb, config, "shop")
	d := &dependent{cluster: c, tb: tb, member: c.add()}
	c.register("legacy", "--grant", "password", "--grant", "refresh_token")
	c.addUser()
	for i, arg := range d.args {
		if strings.HasPrefix(arg, "mongodb://") {
			d.args[i] = arg + "&maxPoolSize=" + connections
		}
	}
	c.start(d.member)
	for range n {
		r := d.token("legacy", url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}})
		r.requireStatus(tb, http.StatusOK)
		d.tokens = append(d.tokens, r.tokens(tb).Refresh)
	}
	return d
}

// token sends a token request.
func (d *dependent) token(clientID string, form url.Values) reply {
	return d.send(d.member, "/token", clientID, form)
}

// refresh uses a refresh token, and keeps the next.
func (d *dependent) refresh(i int) reply {
	r := d.token("legacy", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {d.tokens[i]}})
	if r.status == http.StatusOK {
		d.tokens[i] = r.tokens(d.tb).Refresh
	}
	return r
}

// slow lets each command take that long, except the driver's questions whether the server is there.
func (d *dependent) slow(takes time.Duration) {
	d.proxy.Alter(mongotest.Alteration{Answer: func(command bson.D) bson.D {
		if name := command[0].Key; name != "hello" && name != "isMaster" && name != "ping" {
			select {
			case <-time.After(takes):
			case <-d.tb.Context().Done():
			}
		}
		return nil
	}})
}

// tally is what became of the requests of a flood.
type tally struct {
	refreshed, refused, failed int // refused: with Retry-After
	soon                       int // of those refused, before a call of a slow database ends
	machines                   int // requests for client credentials, all answered
}

// flood sends refresh requests, with all tokens at once and again when a request is answered, but no more than one per
// pace and token; and requests for client credentials beside them.
func (d *dependent) flood(lasts, pace time.Duration) (f tally) {
	ctx, cancel := context.WithTimeout(d.tb.Context(), lasts)
	defer cancel()
	var clients sync.WaitGroup
	var mu sync.Mutex
	for i := range d.tokens {
		clients.Go(func() {
			every(ctx, pace, func(int) {
				began := time.Now()
				r := d.refresh(i)
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				f.count(d.tb, r, took)
			})
		})
	}
	every(ctx, 20*time.Millisecond, func(int) {
		r := d.token("shop", url.Values{"grant_type": {"client_credentials"}})
		if r.status != http.StatusOK {
			d.tb.Errorf("client_credentials: status %d: %s", r.status, r.body)
		}
		f.machines++
	})
	clients.Wait()
	return f
}

func (f *tally) count(tb testing.TB, r reply, took time.Duration) {
	tb.Helper()
	switch {
	case r.status == http.StatusOK:
		f.refreshed++
	case r.status != http.StatusServiceUnavailable:
		tb.Errorf("refresh: status %d: %s", r.status, r.body)
	case r.header.Get("Retry-After") == "":
		f.failed++
	default:
		f.refused++
		if took < slowCall {
			f.soon++
		}
		if o := r.object(tb); o["error"] != "temporarily_unavailable" || o["type"] != "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" {
			tb.Errorf("a refusal is %s", r.body)
		}
	}
}

// TestSlowDatabase: a database that is slow or away hurts only what needs it, and that for no longer than it lasts.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	d := newDependent(t, dependentConfig, "10", 16) // 8 calls at once
	for _, outage := range []struct {
		name        string
		begin, over func()
	}{
		{"slow", func() { d.slow(slowCall) }, func() { d.slow(0) }},
		{"away", d.proxy.Break, d.proxy.Restore},
	} {
		outage.begin()
		f := d.flood(5*time.Second, 50*time.Millisecond)
		outage.over()
		t.Logf("%s: %+v", outage.name, f)
		if f.machines < 50 || f.refused < 20 || f.soon < f.refused/2 {
			t.Errorf("%s: %+v, want the clients answered, and most refusals before a call could end", outage.name, f)
		}
		answered := func() bool { return f.refreshed >= len(d.tokens) && f.failed+f.refused == 0 }
		for attempt := 0; attempt < 5 && !answered(); attempt++ { // how soon depends on the machine
			f = d.flood(time.Second, 200*time.Millisecond)
			t.Logf("after %s: %+v", outage.name, f)
		}
		if !answered() {
			t.Errorf("after the database was %s: %+v, want every refresh answered", outage.name, f)
		}
	}
}
