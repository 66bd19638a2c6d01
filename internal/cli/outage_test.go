package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
)

// proxy stands between a server and its database, and can be cut.
type proxy struct {
	t      *testing.T
	target string

	mu       sync.Mutex
	listener net.Listener
	address  string
	conns    []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return newProxyAt(t, "127.0.0.1:0", target)
}

func newProxyAt(t *testing.T, address, target string) *proxy {
	t.Helper()
	p := &proxy{t: t, target: target, address: address}
	p.mend()
	t.Cleanup(p.cut)
	return p
}

// mend lets connections through.
func (p *proxy) mend() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.address)
	check.OK(p.t, err)
	p.mu.Lock()
	p.listener, p.address = l, l.Addr().String()
	p.mu.Unlock()
	go p.serve(l)
}

// cut ends all connections and takes no more.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(l net.Listener) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		go pipe(from, to)
		go pipe(to, from)
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// limitFile is a configuration that allows each client so many tokens a window.
func limitFile(t *testing.T, requests int, window string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	text := fmt.Sprintf("rate_limit: { default: { client: [ { name: test, requests: %d, window: %s } ] } }\n", requests, window)
	check.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func readiness(t *testing.T, address string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	check.OK(t, err)
	return send(t, req)
}

// While the database is away, tokens go on, the server says that it is
// degraded, and what was counted meanwhile is written afterwards.
func TestServerWithoutItsDatabase(t *testing.T) {
	db, shop := databaseWithShop(t)
	target, err := url.Parse(db[1])
	check.OK(t, err)
	between := newProxy(t, target.Host)
	args := []string{
		"serve", "--listen", "127.0.0.1:0", "--config", limitFile(t, 10, "1h"), "--shutdown-timeout", "3s",
		"--mongodb-uri", "mongodb://" + between.address + "/?directConnection=true", "--mongodb-database", db[3],
	}
	p := launch(t, args...)
	addr := p.listening(t)
	for range 3 {
		askToken(t, "http://"+addr, shop)
	}
	between.cut()
	check.Eventually(t, "the server says that it is degraded", func() bool {
		status, body := readiness(t, addr)
		return status == http.StatusOK && strings.Contains(body, `"status":"degraded"`)
	})
	for range 2 {
		askToken(t, "http://"+addr, shop)
	}
	check.Eventually(t, "the server says what is wrong", func() bool {
		_, body := readiness(t, addr)
		return strings.Contains(body, `"outage":"limits are decided by their on_outage"`) && strings.Contains(body, `"counts":"not shared`)
	})
	between.mend()
	check.Eventually(t, "the server is well again", func() bool {
		_, body := readiness(t, addr)
		return strings.Contains(body, `"status":"ready"`)
	})
	p.stop(t)
	// Five of ten are used up, by what the next start finds in the database.
	next := launch(t, args...)
	addr = next.listening(t)
	passed := 0
	for range 100 {
		if status, _ := postForm(t, "http://"+addr+"/token", shop, url.Values{"grant_type": {"client_credentials"}}); status == http.StatusOK {
			passed++
		}
	}
	// The first few are decided before the database was read.
	if passed < 5 || passed > 10 {
		t.Errorf("%d of a hundred passed, want 5 and what passes before the counts are read", passed)
	}
	between.cut()
	next.stop(t)
}

// What one server admitted the other one knows, and a stop loses nothing.
func TestServersShareALimit(t *testing.T) {
	db, shop := databaseWithShop(t)
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--config", limitFile(t, 10, "1h")}, db...)
	var addresses []string
	var servers []*process
	for range 2 {
		p := launch(t, args...)
		servers, addresses = append(servers, p), append(addresses, p.listening(t))
	}
	passed := 0
	ask := func(server int) (denied bool) {
		status, body := postForm(t, "http://"+addresses[server]+"/token", shop, url.Values{"grant_type": {"client_credentials"}})
		switch status {
		case http.StatusOK:
			passed++
			return false
		case http.StatusTooManyRequests:
			return true
		}
		t.Fatalf("status %d: %s", status, body)
		return false
	}
	for range 9 {
		ask(0)
	}
	servers[0].stop(t)
	check.Eventually(t, "the other server denies", func() bool { return ask(1) })
	// One of ten was left. A key that the second server meets for the first
	// time is decided on what it knows itself, until it has read the rest.
	if passed < 10 || passed > 15 {
		t.Errorf("%d passed under a limit of 10", passed)
	}
}
