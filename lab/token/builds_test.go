package token_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

const (
	user, password = "ada", "a quiet harbour at four in the morning"
	signedIn       = 64
	// noLimits leaves no limit that refreshes reach.
	noLimits = "log: { level: error }\nrate_limit: { mode: \"off\" }\noverload: { mode: \"off\" }\npasswords: { sign_ins_per_minute: 1000000 }\n"
)

// refreshing is a source that refreshes tokens. Each token is used by one request at a time.
type refreshing struct {
	server *servers.Server
	tokens []string
	failed error
}

// Next implements [load.Source].
func (r *refreshing) Next() (load.Call, bool) {
	if r.failed != nil || len(r.tokens) == 0 {
		return load.Call{}, false
	}
	form := "grant_type=refresh_token&refresh_token=" + r.tokens[0]
	r.tokens = r.tokens[1:]
	return load.Call{Request: r.server.Request(servers.Client, r.server.Secrets[servers.Client], form)}, true
}

// Done implements [load.Source].
func (r *refreshing) Done(_ load.Call, status int, body []byte) {
	token := load.RefreshToken(body)
	if token == "" {
		r.failed = fmt.Errorf("a refresh returns %d: %s", status, body)
		return
	}
	r.tokens = append(r.tokens, token)
}

// BenchmarkRefresh refreshes 64 sign-ins without a pause, over one connection and over 64, on a file and on MongoDB.
func BenchmarkRefresh(b *testing.B) {
	for _, in := range []string{"file", "mongodb"} {
		b.Run("store="+in, func(b *testing.B) {
			store := servers.InFile(servers.Binary(b), b.TempDir(), "data")
			if in == "mongodb" {
				var err error
				if store, err = servers.InMongoDB(b.Context(), servers.Binary(b), b.TempDir(), os.Getenv("MONGODB_TEST_URI")); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = store.Drop(b.Context()) })
			}
			s := servers.StartOn(b, store, noLimits,
				servers.Registration{Name: servers.Client, Flags: []string{"--grant=password", "--grant=refresh_token"}},
				servers.Registration{Name: user, Password: password})
			r := &refreshing{server: s}
			for range signedIn {
				a, err := s.Token(b.Context(), servers.Client, servers.SignIn(user, password))
				if err != nil {
					b.Fatal(err)
				}
				r.tokens = append(r.tokens, a.RefreshToken)
			}
			for _, connections := range []int{1, signedIn} {
				b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
					for b.Loop() {
						r.measure(b, connections)
					}
				})
			}
		})
	}
}

func (r *refreshing) measure(b *testing.B, connections int) {
	b.Helper()
	began := servers.Processor(b, r.server)
	f := servers.Send(b, r.server, 0, 2*time.Second, load.Stream{Phases: load.Steady(0, 0), Closed: connections, Source: r})[0]
	used := servers.Processor(b, r.server) - began
	if r.failed != nil {
		b.Fatal(r.failed)
	}
	b.ReportMetric(f.Rate, "req/s")
	b.ReportMetric(float64(used.Microseconds())/float64(len(f.Took)), "cpu-µs/req")
	b.ReportMetric(float64(load.Percentile(f.Took, 99).Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart starts the server with 100,000 clients in its file.
func BenchmarkStart(b *testing.B) {
	store := servers.InFile(servers.Binary(b), b.TempDir(), "data")
	if err := store.Import(b.Context(), 100_000); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := store.Serving(b.Context(), limiterOn, func(s *servers.Server) error {
			used, err := s.Processor()
			memory, failed := process.Memory(s.PID())
			b.ReportMetric(s.Took.Seconds(), "s/start")
			b.ReportMetric(used.Seconds(), "cpu-s/start")
			b.ReportMetric(float64(memory.Peak)/(1<<20), "MiB")
			return errors.Join(err, failed)
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(0, "ns/op")
	}
}
