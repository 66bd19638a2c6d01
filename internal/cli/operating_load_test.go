package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// balancer stands in for a load balancer of connections, as a Service of Kubernetes is one. Every
// probeEvery it asks each instance for /readyz. A new connection goes to the next instance whose last
// answer was 200; those that are open stay where they are. It repeats nothing: a connection that no
// instance takes is closed.
type balancer struct {
	instances []string
	ready     []atomic.Bool
	next      atomic.Int64
}

const (
	probeEvery   = 100 * time.Millisecond
	probeTimeout = time.Second
)

// newBalancer starts a load balancer at an address, which ends with the test.
func newBalancer(t *testing.T, address string, instances []string) *balancer {
	t.Helper()
	b := &balancer{instances: instances, ready: make([]atomic.Bool, len(instances))}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	check.OK(t, err)
	var tasks sync.WaitGroup
	for i := range instances {
		tasks.Go(func() { b.probe(t.Context(), i) })
	}
	go b.serve(l)
	t.Cleanup(func() {
		_ = l.Close()
		tasks.Wait()
	})
	check.Eventually(t, "all instances are ready", func() bool {
		all := true
		for i := range b.ready {
			all = all && b.ready[i].Load()
		}
		return all
	})
	return b
}

func (b *balancer) probe(ctx context.Context, i int) {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		ready := false
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.instances[i]+"/readyz", http.NoBody); err == nil {
			if res, err := client.Do(req); err == nil {
				_ = res.Body.Close()
				ready = res.StatusCode == http.StatusOK
			}
		}
		b.ready[i].Store(ready)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (b *balancer) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go b.relay(client)
	}
}

func (b *balancer) relay(client net.Conn) {
	for range b.instances {
		i := int(b.next.Add(1)) % len(b.instances)
		if !b.ready[i].Load() {
			continue
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", b.instances[i])
		if err != nil {
			break
		}
		go pipe(server, client)
		pipe(client, server)
		return
	}
	_ = client.Close()
}

// load is requests at a steady rate from clients that keep their connections and repeat nothing.
type load struct {
	t    *testing.T
	base string // of the load balancer
	stop chan struct{}
	end  sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int // by what was asked, and the answer
	passed  map[string]int // requests of a client for itself that were admitted
}

func newLoad(t *testing.T, base string) *load {
	t.Helper()
	l := &load{t: t, base: base, passed: map[string]int{}}
	t.Cleanup(l.halt)
	return l
}

// begin has so many callers act every so often until the load is halted.
func (l *load) begin(callers ...func(*caller)) {
	l.stop, l.answers = make(chan struct{}), map[string]int{}
	for _, act := range callers {
		c := &caller{load: l, http: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}}
		l.end.Go(func() {
			defer c.http.CloseIdleConnections()
			tick := time.NewTicker(callEvery)
			defer tick.Stop()
			for {
				act(c)
				select {
				case <-tick.C:
				case <-l.stop:
					return
				}
			}
		})
	}
}

// callEvery is the time between two rounds of a caller.
const callEvery = 100 * time.Millisecond

// halt waits for the answers to what was asked.
func (l *load) halt() {
	if l.stop != nil {
		close(l.stop)
		l.end.Wait()
		l.stop = nil
	}
}

func (l *load) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[what]++
}

// counted is how often that was the answer since the load began.
func (l *load) counted(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[what]
}

// so checks that each of these answers came, and no other but those that may come.
func (l *load) so(must []string, may ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, what := range must {
		if l.answers[what] == 0 {
			l.t.Errorf("no answer %q", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(l.answers)) {
		l.t.Logf("%5d %s", l.answers[what], what)
		if !slices.Contains(append(may, must...), what) {
			l.t.Errorf("%d answers %q", l.answers[what], what)
		}
	}
}

// caller is a client of the service with one connection.
type caller struct {
	load    *load
	http    *http.Client
	refresh string // the refresh token
}

// ask posts a form, counts the answer by its status and what it says, and returns what it holds. There
// is no second attempt, not even where the HTTP client could make one.
func (c *caller) ask(what, path string, as credentials, form url.Values) (status int, answer tokenAnswer) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.load.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.load.count(err.Error())
		return 0, answer
	}
	req.GetBody = nil
	req.SetBasicAuth(as.ClientID, as.ClientSecret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.http.Do(req)
	if err != nil {
		c.load.count(fmt.Sprintf("%s failed: %v", what, errors.Unwrap(err)))
		return 0, answer
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case err != nil:
		c.load.count(fmt.Sprintf("%s %d, broken: %v", what, res.StatusCode, err))
	case path == "/introspect" && res.StatusCode == http.StatusOK && !answer.Active:
		c.load.count(what + " not active")
	default:
		c.load.count(strings.TrimSpace(fmt.Sprintf("%s %d %s", what, res.StatusCode, answer.Error)))
	}
	return res.StatusCode, answer
}

// tokenAnswer is the answer to a token request, or to an introspection.
type tokenAnswer struct {
	userTokens
	Active bool `json:"active"`
}

// forMachine asks for a token for the client itself, and introspects it if asked to.
func forMachine(as credentials, introspect bool) func(*caller) {
	return func(c *caller) {
		status, got := c.ask(as.ClientID, "/token", as, url.Values{"grant_type": {"client_credentials"}})
		if status != http.StatusOK {
			return
		}
		c.load.mu.Lock()
		c.load.passed[as.ClientID]++
		c.load.mu.Unlock()
		if introspect {
			c.ask("introspect", "/introspect", as, url.Values{"token": {got.Access}})
		}
	}
}

// forPerson signs a user in once, and refreshes after that, always with the newest token that has come.
func forPerson(as credentials, name, password string) func(*caller) {
	return func(c *caller) {
		what, form := "refresh", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.refresh}}
		if c.refresh == "" {
			what, form = "sign-in", url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}}
		}
		if status, got := c.ask(what, "/token", as, form); status == http.StatusOK {
			c.refresh = got.Refresh
		}
	}
}

// pipe copies until the end of a connection, and closes both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
