// Package gateway_test measures what a gateway adds to the token endpoint behind it.
package gateway_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

const form = "grant_type=client_credentials&scope=read+write"

const (
	ample = "log: { level: error }\nrate_limit: { default: { client: [ { name: ample, requests: 1000000000, window: 60s } ] } }\n"
	tight = "log: { level: error }\nrate_limit: { default: { client: [ { name: tight, requests: 1, window: 1h } ] } }\n"
)

// scene is something that is asked for tokens.
type scene struct {
	name  string
	want  int // the status of nearly all answers
	start func(tb testing.TB) (asked, watched *servers.Server)
}

func scenes() []scene {
	before := func(config string) func(tb testing.TB) (asked, watched *servers.Server) {
		return func(tb testing.TB) (asked, watched *servers.Server) {
			tb.Helper()
			g := servers.StartGateway(tb, servers.StartPeer(tb, "fixed"), config)
			return g, g
		}
	}
	return []scene{
		{"direct", http.StatusOK, func(tb testing.TB) (asked, watched *servers.Server) {
			tb.Helper()
			s := servers.StartPeer(tb, "fixed")
			return s, s
		}},
		{"gateway", http.StatusOK, before(ample)},
		{"gateway-denies", http.StatusTooManyRequests, before(tight)},
		{"reverse-proxy", http.StatusOK, func(tb testing.TB) (asked, watched *servers.Server) {
			tb.Helper()
			s := servers.StartPeer(tb, "reverse-proxy", servers.StartPeer(tb, "fixed").URL())
			return s, s
		}},
		{"nginx", http.StatusOK, func(tb testing.TB) (asked, watched *servers.Server) {
			tb.Helper()
			s := startNginx(tb, servers.StartPeer(tb, "fixed"))
			return s, s
		}},
	}
}

// startNginx starts nginx with a limit for each client, which no client reaches, before an upstream.
func startNginx(tb testing.TB, upstream *servers.Server) *servers.Server {
	tb.Helper()
	dir := tb.TempDir()
	free, err := process.FreeAddresses(tb.Context(), 1)
	if err != nil {
		tb.Fatal(err)
	}
	text := fmt.Sprintf("events { worker_connections 1024; }\nhttp {\n"+
		"access_log off; keepalive_requests 1000000000; limit_req_zone $http_authorization zone=clients:1m rate=1000000r/s;\n"+
		"upstream behind { server %s; keepalive 64; keepalive_requests 1000000000; }\n"+
		"server { listen %s; location / { limit_req zone=clients burst=1000 nodelay;\n"+
		"proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; } }\n", upstream.Address, free[0])
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text+"}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	p, err := process.Start(servers.Core(tb), dir, "nginx", "nginx", "-p", dir, "-c", file, "-e", "stderr",
		"-g", "daemon off; master_process off; error_log stderr; pid "+filepath.Join(dir, "pid")+";")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
	if err := p.Await(tb.Context(), process.Listens(free[0])); err != nil {
		tb.Fatal(err)
	}
	return &servers.Server{Process: p, Address: free[0], Secrets: upstream.Secrets}
}

// TestScenes: what is measured does what it should.
func TestScenes(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			asked, _ := s.start(t)
			for range 2 { // the first one is under every limit
				r := send(t, asked, 1, 0, 50*time.Millisecond)
				if r.Statuses[s.want] < len(r.Took)-1 {
					t.Errorf("answers by status: %v, want %d", r.Statuses, s.want)
				}
			}
		})
	}
}

// BenchmarkGateway is client_credentials over 32 kept-alive connections, the gateway and its upstream on one processor: how many are
// answered in a second while all connections ask without a pause, what one takes of the processor in the process that
// is asked, and p50 and p99 at a fixed rate.
func BenchmarkGateway(b *testing.B) {
	const rate = 2000
	for _, s := range scenes() {
		b.Run("asked="+s.name, func(b *testing.B) {
			asked, watched := s.start(b)
			send(b, asked, 32, 0, time.Second) // warm; and what a tight limit admits
			for b.Loop() {
				began := servers.Processor(b, watched)
				r := send(b, asked, 32, 0, 3*time.Second)
				used := servers.Processor(b, watched) - began
				at := send(b, asked, 32, rate, 3*time.Second)
				if r.Statuses[s.want] != len(r.Took) || at.Statuses[s.want] != len(at.Took) {
					b.Fatalf("answers by status: %v, %v, want %d", r.Statuses, at.Statuses, s.want)
				}
				b.ReportMetric(r.Rate, "req/s")
				b.ReportMetric(float64(used.Nanoseconds())/1000/float64(len(r.Took)), "cpu-µs/req")
				b.ReportMetric(float64(load.Percentile(at.Took, 50).Microseconds()), "p50-µs")
				b.ReportMetric(float64(load.Percentile(at.Took, 99).Microseconds()), "p99-µs")
				b.ReportMetric(100*at.Stalled, "stalled-%")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkMemory is what a million refresh tokens take of the memory of a gateway, above what it has after 20,000 requests
// of the same kind.
func BenchmarkMemory(b *testing.B) {
	const many = 1_000_000
	for b.Loop() {
		g := servers.StartGateway(b, servers.StartPeer(b, "fixed"), ample)
		request := g.Request(servers.Client, g.Secrets[servers.Client], "grant_type=authorization_code&code=c")
		known := func() int {
			found, err := g.Metrics(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return int(found["oauth_gateway_subjects"])
		}
		fill := func(upTo int) int64 {
			for known() < upTo {
				servers.Send(b, g, 0, time.Second, servers.Requests(0, 32, func(int) []byte { return request }))
			}
			memory, err := process.Memory(g.PID())
			if err != nil {
				b.Fatal(err)
			}
			return memory.Own()
		}
		few := fill(20_000)
		all := fill(many)
		b.ReportMetric(float64(few)/(1<<20), "MiB-before")
		b.ReportMetric(float64(all-few)/(1<<20), "MiB-more")
		b.ReportMetric(0, "ns/op")
	}
}

func send(tb testing.TB, s *servers.Server, connections int, rate float64, d time.Duration) load.Figures {
	tb.Helper()
	request := s.Request(servers.Client, s.Secrets[servers.Client], form)
	return servers.Send(tb, s, 0, d, servers.Requests(rate, connections, func(int) []byte { return request }))[0]
}
