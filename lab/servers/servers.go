// Package servers starts our server and its peers, each as a process of its own; for benchmarks, on one processor.
package servers

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/lab/machine"
)

// binaries are our server and the peers.
type binaries struct{ ours, peer string }

// build builds them when they are first asked for.
var build = sync.OnceValues(func() (binaries, error) {
	dir, err := os.MkdirTemp("", "benchmarks-*")
	b := binaries{ours: filepath.Join(dir, "oauth-server"), peer: filepath.Join(dir, "peer")}
	if err != nil {
		return b, err
	}
	built = dir
	ctx := context.Background()
	return b, errors.Join(goBuild(ctx, "..", b.ours, "./cmd/oauth-server"), goBuild(ctx, ".", b.peer, "./cmd/peer"))
})

var built string // directory of the binaries; empty: there is none

// Main runs the tests of a package, and removes the binaries that they needed.
func Main(m *testing.M) int {
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	return status
}

func builtFor(tb testing.TB) binaries {
	tb.Helper()
	b, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// goBuild builds a command of the module in the directory, which is seen from this module.
func goBuild(ctx context.Context, module, binary, command string) error {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "oauth-server/lab")
	if err != nil {
		return err
	}
	_, err = output(ctx, "", "go", "-C", filepath.Join(strings.TrimSpace(string(root)), module), "build", "-o", binary, command)
	return err
}

// output runs a command and returns what it prints.
func output(ctx context.Context, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // G204: what the benchmarks run
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// Server is a running token endpoint.
type Server struct {
	*machine.Process
	Address string
	Secrets map[string]string // by client
	metrics string            // URL
}

// Client is the client of peers.
const Client = "shop"

// Peer starts a peer: bare, fosite or go-oauth2.
func Peer(tb testing.TB, name string) *Server {
	tb.Helper()
	s := &Server{Address: address(tb), Secrets: map[string]string{Client: rand.Text() + rand.Text()}}
	s.metrics = "http://" + s.Address + "/metrics"
	return s.start(tb, builtFor(tb).peer, name, s.Address, Client, s.Secrets[Client])
}

// Gateway starts a gateway of ours before a peer.
func Gateway(tb testing.TB, upstream *Server, config string) *Server {
	tb.Helper()
	admin, b := address(tb), builtFor(tb)
	s := &Server{Address: address(tb), Secrets: upstream.Secrets, metrics: "http://" + admin + "/metrics"}
	return s.start(tb, b.ours, "gateway", "--config="+configFile(tb, config), "--listen="+s.Address, "--admin-listen="+admin,
		"--upstream=http://"+upstream.Address, "--token-path=/token", "--drain-delay=0s", "--data="+filepath.Join(tb.TempDir(), "gateway.db"))
}

// Registration is a client or a user of ours.
type Registration struct {
	Name     string
	Grants   []string
	Flags    []string // more of `client create`
	Password string   // of a user, who has no grants
}

// Store is an embedded store of ours.
type Store struct {
	File    string
	Secrets map[string]string // by client
	binary  string
}

// NewStore makes a store in the directory, with those who are registered.
func NewStore(tb testing.TB, dir string, all ...Registration) *Store {
	tb.Helper()
	b := builtFor(tb)
	s := &Store{File: filepath.Join(dir, "oauth-server.db"), Secrets: map[string]string{}, binary: b.ours}
	for _, r := range all {
		if err := b.register(tb.Context(), s, r); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// Knows reports whether our server accepts the configuration.
func (s *Store) Knows(tb testing.TB, config string) bool {
	tb.Helper()
	_, err := output(tb.Context(), "", s.binary, "serve", "--check-config", "--config="+configFile(tb, config),
		"--issuer=http://127.0.0.1", "--data="+s.File)
	return err == nil
}

// Serve starts our server on the store.
func (s *Store) Serve(tb testing.TB, config string) *Server {
	tb.Helper()
	admin := address(tb)
	server := &Server{Address: address(tb), Secrets: s.Secrets, metrics: "http://" + admin + "/metrics"}
	return server.start(tb, s.binary, "serve", "--config="+configFile(tb, config), "--listen="+server.Address,
		"--admin-listen="+admin, "--issuer=http://"+server.Address, "--drain-delay=0s", "--data="+s.File)
}

func configFile(tb testing.TB, config string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "oauth-server.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// Ours starts our server on an embedded store, with the configuration and with those who are registered.
func Ours(tb testing.TB, config string, all ...Registration) *Server {
	tb.Helper()
	return NewStore(tb, tb.TempDir(), all...).Serve(tb, config)
}

func (b *binaries) register(ctx context.Context, s *Store, r Registration) error {
	data := "--data=" + s.File
	if r.Password != "" {
		_, err := output(ctx, r.Password+"\n", b.ours, "user", "create", r.Name, "--password-stdin", data)
		return err
	}
	args := []string{b.ours, "client", "create", r.Name, "--create", "--scope=read", "--scope=write", "--output=json", data}
	args = append(args, r.Flags...)
	for _, grant := range r.Grants {
		args = append(args, "--grant="+grant)
	}
	out, err := output(ctx, "", args...)
	if err != nil {
		return err
	}
	var made struct {
		Secret string `json:"client_secret"`
	}
	err = json.Unmarshal(out, &made)
	s.Secrets[r.Name] = made.Secret
	return err
}

func (s *Server) start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	core := machine.AnyCore
	if _, measured := tb.(*testing.B); measured {
		core = machine.ServerCore
	}
	var err error
	if s.Process, err = machine.Start(tb.Context(), core, tb.TempDir(), s.Address, args...); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func address(tb testing.TB) string {
	tb.Helper()
	free, err := machine.FreeAddress(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return free
}

// Request returns a token request of the client, with that form and secret.
func (s *Server) Request(client, secret, form string) []byte {
	return fmt.Appendf(nil, "POST /token HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		s.Address, base64.StdEncoding.EncodeToString([]byte(client+":"+secret)), len(form), form)
}

// Processor returns the processor time that the server has used.
func (s *Server) Processor(tb testing.TB) time.Duration {
	tb.Helper()
	used, err := machine.Threads(s.PID())()
	if err != nil {
		tb.Fatal(err)
	}
	return used
}

// Memory returns how many bytes of memory the server has, without files that it has mapped.
func (s *Server) Memory(tb testing.TB) int64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	tb.Fatal("/proc/PID/status has no RssAnon")
	return 0
}

// Allocated returns the number of objects and of bytes that the process has allocated.
func (s *Server) Allocated(ctx context.Context) (objects, bytes float64, err error) {
	found, err := s.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	objects, bytes = found["go_memstats_mallocs_total"], found["go_memstats_alloc_bytes_total"]
	if objects == 0 || bytes == 0 {
		return 0, 0, fmt.Errorf("%s has no allocations", s.metrics)
	}
	return objects, bytes, nil
}

// Metrics returns the values of /metrics by their names, with the labels.
func (s *Server) Metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	found := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if i := strings.LastIndexByte(lines.Text(), ' '); i >= 0 {
			found[lines.Text()[:i]], _ = strconv.ParseFloat(lines.Text()[i+1:], 64)
		}
	}
	return found, lines.Err()
}
