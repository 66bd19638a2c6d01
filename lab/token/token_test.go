// Package token_test measures token endpoints: ours, and what a user could have in its place.
//
// Of the processor time of our token request, the signature, HTTP and the rest take about a third each. The rest is mostly encoding
// claims, the decision with metrics and header fields, the response and the form. The limiter takes 4 to 6 µs, most of it for
// header fields and metrics. p99 is mostly the garbage collector, which runs every 3,200 requests for 4 ms, and the pauses of a
// shared machine. A faster server has more to do at half of its own rate.
//
// On two cores that the load generator shares, a request takes 1.26 times the time of the bare handler, and 15 µs more than on a core of
// its own. In 9 of these the kernel, in write(2), delivers the response and wakes the generator. Nothing else has more than 1 µs of them.
//
// Profile-guided optimisation changed nothing: 0.94 to 1.06 of the time in four rounds by turns, with a profile of these requests.
package token_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

// form asks every server for the same token.
const form = "grant_type=client_credentials&scope=read+write"

// The configurations of our server.
const (
	limiterOff = "log: { level: error }\nrate_limit: { mode: \"off\" }\n"
	limiterOn  = "log: { level: error }\nrate_limit: { default: { client: [ { name: ample, requests: 1000000000, window: 60s } ] } }\n"
	// asShipped has the limiter and a log line for each request.
	asShipped = "log: { format: json }\nrate_limit: { default: { client: [ { name: ample, requests: 1000000000, window: 60s } ] } }\n"
)

// endpoint is a server that is measured.
type endpoint struct {
	name  string
	start func(tb testing.TB) *servers.Server
}

func endpoints() []endpoint {
	ours := func(config string) func(tb testing.TB) *servers.Server {
		return func(tb testing.TB) *servers.Server {
			tb.Helper()
			return servers.Start(tb, config, servers.Registration{Name: servers.Client, Flags: []string{"--grant=client_credentials"}})
		}
	}
	peer := func(name string) endpoint {
		return endpoint{name, func(tb testing.TB) *servers.Server {
			tb.Helper()
			return servers.StartPeer(tb, name)
		}}
	}
	return []endpoint{
		peer("bare"),
		{"ours", ours(limiterOn)},
		{"ours-limiter-off", ours(limiterOff)},
		{"ours-with-log", ours(asShipped)},
		peer("fosite"), peer("go-oauth2"),
	}
}

// TestEqualTokens: what is measured does the same work. Each server answers with a JWT that is signed by ES256, and
// each but the bare handler refuses a wrong secret.
func TestEqualTokens(t *testing.T) {
	t.Parallel()
	for _, e := range endpoints() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := e.start(t)
			a, err := s.Token(t.Context(), servers.Client, servers.Own())
			if token := a.AccessToken; err != nil || !strings.HasPrefix(header(t, token), `{"alg":"ES256"`) || strings.Count(token, ".") != 2 {
				t.Errorf("token %q: %v", token, err)
			}
			s.Secrets[servers.Client] = "wrong"
			a, err = s.Post(t.Context(), "/token", servers.Client, servers.Own())
			if refused := a.Status == http.StatusUnauthorized; err != nil || refused == (e.name == "bare") {
				t.Errorf("a wrong secret is answered by %d, %v", a.Status, err)
			}
		})
	}
}

const connections = 32

// tokens returns the requests for tokens of a server, which has answered some.
func tokens(b *testing.B, s *servers.Server) (ask func(int) []byte) {
	b.Helper()
	request := s.Request(servers.Client, s.Secrets[servers.Client], form)
	ask = func(int) []byte { return request }
	send(b, s, 0, ask, 0, time.Second)
	return ask
}

// BenchmarkToken is client_credentials over kept-alive connections. Three times all connections ask without a pause: req/s,
// and what a request takes of processor time and of memory, in the median. Then requests come at half that rate, at random
// times: p50, p99 and p999 from when each was due. stalled-% is for how much of that the load generator did not run.
func BenchmarkToken(b *testing.B) {
	for _, e := range endpoints() {
		b.Run("server="+e.name, func(b *testing.B) {
			s := e.start(b)
			ask := tokens(b, s)
			b.ResetTimer()
			for b.Loop() {
				rate := saturate(b, s, ask) / 2
				r := send(b, s, rate, ask, time.Second/4, 3*time.Second)
				b.ReportMetric(100*r.Stalled, "stalled-%")
				for p, unit := range map[float64]string{50: "p50-µs", 99: "p99-µs", 99.9: "p999-µs"} {
					b.ReportMetric(float64(load.Percentile(r.Took, p).Microseconds()), unit)
				}
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkShared is client_credentials on two cores that the load generator shares: what a request takes over 32 connections that
// ask without a pause, and how many of a hundred are refused with 503 over 128.
func BenchmarkShared(b *testing.B) {
	const many = 128
	servers.ShareCores(b)
	for _, e := range endpoints() {
		b.Run("server="+e.name, func(b *testing.B) {
			s := e.start(b)
			ask := tokens(b, s)
			for b.Loop() {
				saturate(b, s, ask)
				r := servers.Send(b, s, 0, 3*time.Second, servers.Requests(0, many, ask))[0]
				refused := r.Statuses[http.StatusServiceUnavailable]
				if r.Statuses[http.StatusOK]+refused != len(r.Took) {
					b.Fatalf("%d requests, answers by status: %v", len(r.Took), r.Statuses)
				}
				b.ReportMetric(100*float64(refused)/float64(len(r.Took)), "refused-%")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// cost is what requests take while there is always a next one: how many are answered in a second, and what one takes.
type cost struct{ rate, processor, objects, bytes float64 }

// saturate reports what a request takes while there is always a next one, and returns how many are answered in a second.
func saturate(b *testing.B, s *servers.Server, ask func(int) []byte) (rate float64) {
	b.Helper()
	var all [3]cost
	for i := range all {
		all[i] = saturateOnce(b, s, ask)
	}
	median := func(of func(c cost) float64) float64 {
		return benchmark.Median([]float64{of(all[0]), of(all[1]), of(all[2])})
	}
	rate = median(func(c cost) float64 { return c.rate })
	b.ReportMetric(rate, "req/s")
	b.ReportMetric(median(func(c cost) float64 { return c.processor }), "cpu-µs/req")
	b.ReportMetric(median(func(c cost) float64 { return c.objects }), "objects/req")
	b.ReportMetric(median(func(c cost) float64 { return c.bytes }), "bytes/req")
	return rate
}

// saturateOnce leaves out what it takes to ask the server for its allocations, which is more for ours.
func saturateOnce(b *testing.B, s *servers.Server, ask func(int) []byte) (c cost) {
	b.Helper()
	objects, bytes := allocated(b, s)
	asking, askingBytes := allocated(b, s)
	began := servers.Processor(b, s)
	r := send(b, s, 0, ask, 0, time.Second)
	used := servers.Processor(b, s) - began
	objectsThen, bytesThen := allocated(b, s)
	n := float64(len(r.Took))
	return cost{
		rate: r.Rate, processor: float64(used.Nanoseconds()) / 1000 / n,
		objects: (objectsThen - asking - (asking - objects)) / n, bytes: (bytesThen - askingBytes - (askingBytes - bytes)) / n,
	}
}

// allocated returns the number of objects and of bytes that the server has allocated.
func allocated(b *testing.B, s *servers.Server) (objects, bytes float64) {
	b.Helper()
	found, err := s.Metrics(b.Context())
	if objects, bytes = found["go_memstats_mallocs_total"], found["go_memstats_alloc_bytes_total"]; err != nil || objects == 0 || bytes == 0 {
		b.Fatalf("the server has no allocations: %v", err)
	}
	return objects, bytes
}

func send(b *testing.B, s *servers.Server, rate float64, ask func(int) []byte, warm, d time.Duration) load.Figures {
	b.Helper()
	r := servers.Send(b, s, warm, d, servers.Requests(rate, connections, ask))[0]
	if r.Statuses[http.StatusOK] != len(r.Took) {
		b.Fatalf("%d requests, answers by status: %v (0: none within a second after the end)", len(r.Took), r.Statuses)
	}
	return r
}

// header returns the header of a JWT.
func header(t *testing.T, token string) string {
	t.Helper()
	encoded, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Errorf("token %q: %v", token, err)
	}
	return string(text)
}
