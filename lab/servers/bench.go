package servers

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

var built string // directory of the binaries, or empty

// directory makes it when the first binary is asked for.
var directory = sync.OnceValues(func() (_ string, err error) {
	built, err = os.MkdirTemp("", "lab-*")
	return built, err
})

// ours and peer build our server and the peers when they are first asked for.
var (
	ours = sync.OnceValues(func() (string, error) {
		if binary := os.Getenv("LAB_SERVER"); binary != "" { // another build, for `make bench-versus`
			return binary, nil
		}
		dir, err := directory()
		if err != nil {
			return "", err
		}
		return BuildServer(context.Background(), dir) //nolint:forbidigo // built once for all tests
	})
	peer = sync.OnceValues(func() (string, error) {
		dir, err := directory()
		if err != nil {
			return "", err
		}
		binary := filepath.Join(dir, "peer")
		return binary, Build(context.Background(), "lab", "./cmd/peer", binary) //nolint:forbidigo // built once for all tests
	})
)

// Binary returns our server, built for the tests of a package, which call [Main].
func Binary(tb testing.TB) string {
	tb.Helper()
	return must(ours())(tb)
}

// Main runs the tests of a package, and removes the binaries that they needed.
func Main(m *testing.M) int {
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	return status
}

func must[T any](v T, err error) func(tb testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

var shared bool // see ShareCores

// ShareCores lets the servers and the load generator of a benchmark use all processors until it ends.
func ShareCores(b *testing.B) {
	b.Helper()
	shared = true
	b.Cleanup(func() { shared = false })
}

// Core returns the processor for the server of a benchmark. A test pins it to none.
func Core(tb testing.TB) int {
	tb.Helper()
	return pinned(tb, process.ServerCore)
}

// Generator returns the processor for the load generator of a benchmark. A test pins it to none.
func Generator(tb testing.TB) int {
	tb.Helper()
	return pinned(tb, process.GeneratorCore)
}

func pinned(tb testing.TB, core int) int {
	tb.Helper()
	if _, measured := tb.(*testing.B); !measured || shared {
		return process.AnyCore
	}
	return core
}

// Client is the client of peers.
const Client = "shop"

// StartPeer starts a peer for a benchmark or test: bare, fixed, fosite, go-oauth2, or reverse-proxy with the URL of its upstream.
func StartPeer(tb testing.TB, name string, upstream ...string) *Server {
	tb.Helper()
	free := must(process.FreeAddresses(tb.Context(), 1))(tb)[0]
	s := &Server{Address: free, Admin: free, Secrets: map[string]string{Client: rand.Text() + rand.Text()}}
	binary := must(peer())(tb)
	args := append([]string{binary, name, free, Client, s.Secrets[Client]}, upstream...)
	s.Process = must(process.Start(Core(tb), tb.TempDir(), name, args...))(tb)
	stopAfter(tb, s)
	if err := s.Await(tb.Context(), process.Answers(s.URL()+"/metrics")); err != nil {
		tb.Fatal(err)
	}
	return s
}

// StartGateway starts a gateway before a peer.
func StartGateway(tb testing.TB, upstream *Server, config string) *Server {
	tb.Helper()
	s := must(Gateway(tb.Context(), Core(tb), Binary(tb), tb.TempDir(), upstream.URL(), "/token", config))(tb)
	s.Secrets = upstream.Secrets
	stopAfter(tb, s)
	return s
}

// Registration is a client or a user.
type Registration struct {
	Name     string
	Flags    []string // of `client create`
	Password string   // of a user
}

// Start starts our server on a file with those who are registered.
func Start(tb testing.TB, config string, all ...Registration) *Server {
	tb.Helper()
	return StartOn(tb, InFile(Binary(tb), tb.TempDir(), "oauth-server"), config, all...)
}

// StartOn is [Start] on a store.
func StartOn(tb testing.TB, store *Store, config string, all ...Registration) *Server {
	tb.Helper()
	for _, r := range all {
		var err error
		if r.Password != "" {
			err = store.CreateUser(tb.Context(), r.Name, r.Password)
		} else {
			err = store.CreateClient(tb.Context(), r.Name, append([]string{"--scope=read", "--scope=write"}, r.Flags...)...)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	s := must(store.Serve(tb.Context(), Core(tb), config))(tb)
	stopAfter(tb, s)
	return s
}

func stopAfter(tb testing.TB, s *Server) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

// Requests returns a stream of requests at a rate, over so many connections. With the rate 0, each connection sends the
// next request as soon as it has an answer.
func Requests(rate float64, connections int, request func(n int) []byte, from ...string) load.Stream {
	s := load.Stream{Phases: load.Steady(rate, 0), Connections: connections, From: from, Source: load.Repeat(request)}
	if rate == 0 {
		s.Closed = connections
	}
	return s
}

// Send sends [Requests] to the server of a benchmark or test, and returns those that were due after warm.
func Send(tb testing.TB, s *Server, warm, d time.Duration, streams ...load.Stream) (all []load.Figures) {
	tb.Helper()
	for i := range streams {
		streams[i].Phases = load.Steady(streams[i].Phases[0].Rate, warm+d)
	}
	o := load.Options{Address: s.Address, Core: Generator(tb), Seed: 1}
	for _, r := range must(load.Run(tb.Context(), o, streams...))(tb) {
		all = append(all, r.Between(warm, warm+d))
	}
	return all
}

// Processor returns the processor time that the server has used.
func Processor(tb testing.TB, s *Server) time.Duration {
	tb.Helper()
	return must(s.Processor())(tb)
}
