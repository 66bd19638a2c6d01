package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

// binaries are our server and the peers.
type binaries struct{ ours, peer string }

// build builds them when they are first asked for.
var build = sync.OnceValues(func() (b binaries, err error) {
	if built, err = os.MkdirTemp("", "benchmarks-*"); err != nil {
		return b, err
	}
	ctx := context.Background()
	b.peer = filepath.Join(built, "peer")
	ours, err := BuildServer(ctx, built)
	b.ours = ours
	return b, errors.Join(err, Build(ctx, "lab", "./cmd/peer", b.peer))
})

var built string // directory of the binaries, or empty

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

// core returns the processor for the server of a benchmark. A test pins it to none.
func core(tb testing.TB) int {
	tb.Helper()
	if _, measured := tb.(*testing.B); measured {
		return process.ServerCore
	}
	return process.AnyCore
}

// Generator returns the processor for the load generator of a benchmark. A test pins it to none.
func Generator(tb testing.TB) int {
	tb.Helper()
	if _, measured := tb.(*testing.B); measured {
		return process.GeneratorCore
	}
	return process.AnyCore
}

// Client is the client of peers.
const Client = "shop"

// StartPeer starts a peer for a benchmark or test: bare, fixed, fosite or go-oauth2.
func StartPeer(tb testing.TB, name string) *Server {
	tb.Helper()
	free := must(process.FreeAddresses(tb.Context(), 1))(tb)[0]
	s := &Server{Address: free, Admin: free, Secrets: map[string]string{Client: rand.Text() + rand.Text()}}
	binary := must(build())(tb).peer
	s.Process = must(process.Start(core(tb), tb.TempDir(), name, binary, name, free, Client, s.Secrets[Client]))(tb)
	stopAfter(tb, s)
	if err := s.Await(tb.Context(), process.Answers(s.URL()+"/metrics")); err != nil {
		tb.Fatal(err)
	}
	return s
}

// StartGateway starts a gateway before a peer.
func StartGateway(tb testing.TB, upstream *Server, config string) *Server {
	tb.Helper()
	s := must(Gateway(tb.Context(), core(tb), must(build())(tb).ours, tb.TempDir(), upstream.URL(), "/token", config))(tb)
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

// NewStore makes a store in the directory, with those who are registered.
func NewStore(tb testing.TB, dir string, all ...Registration) *Store {
	tb.Helper()
	s := InFile(must(build())(tb).ours, dir, "oauth-server")
	for _, r := range all {
		var err error
		if r.Password != "" {
			err = s.CreateUser(tb.Context(), r.Name, r.Password)
		} else {
			err = s.CreateClient(tb.Context(), r.Name, append([]string{"--scope=read", "--scope=write"}, r.Flags...)...)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// Start starts our server on a store with those who are registered.
func Start(tb testing.TB, config string, all ...Registration) *Server {
	tb.Helper()
	return StartOn(tb, NewStore(tb, tb.TempDir(), all...), config)
}

// StartOn starts our server on a store.
func StartOn(tb testing.TB, store *Store, config string) *Server {
	tb.Helper()
	s := must(store.Serve(tb.Context(), core(tb), config))(tb)
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
