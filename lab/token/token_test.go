// Package token_test measures token endpoints: ours, and what a user could have in its place.
package token_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/machine"
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
			return servers.Ours(tb, config, servers.Registration{Name: servers.Client, Grants: []string{"client_credentials"}})
		}
	}
	peer := func(name string) endpoint {
		return endpoint{name, func(tb testing.TB) *servers.Server {
			tb.Helper()
			return servers.Peer(tb, name)
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
			status, token := ask(t, s, s.Secrets[servers.Client])
			if status != http.StatusOK || !strings.HasPrefix(header(t, token), `{"alg":"ES256"`) || strings.Count(token, ".") != 2 {
				t.Errorf("%d, token %q", status, token)
			}
			status, _ = ask(t, s, "wrong")
			if refused := status == http.StatusUnauthorized; refused == (e.name == "bare") {
				t.Errorf("a wrong secret is answered by %d", status)
			}
		})
	}
}

// ask sends one token request.
func ask(t *testing.T, s *servers.Server, secret string) (status int, token string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+"/token", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(servers.Client), url.QueryEscape(secret))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil && res.StatusCode == http.StatusOK {
		t.Fatal(err)
	}
	return res.StatusCode, answer.Token
}

const connections = 32

// BenchmarkToken is client_credentials over kept-alive connections. Three times all connections ask without a pause: req/s,
// and what a request takes of processor time and of memory, in the median. Then requests come at half that rate, at random
// times: p50, p99 and p999 from when each was due. stalled-% is for how much of that the load generator did not run.
func BenchmarkToken(b *testing.B) {
	for _, e := range endpoints() {
		b.Run("server="+e.name, func(b *testing.B) {
			s := e.start(b)
			request := s.Request(servers.Client, s.Secrets[servers.Client], form)
			stream := load.Stream{Connections: connections, Request: func(int) []byte { return request }}
			send(b, s, stream, 0, time.Second) // warm
			b.ResetTimer()
			for b.Loop() {
				stream.Rate = saturate(b, s, stream) / 2
				const half = 3 * time.Second
				r := send(b, s, stream, time.Second/4, half)
				b.ReportMetric(100*r.Stalled.Seconds()/half.Seconds(), "stalled-%")
				b.ReportMetric(float64(r.Percentile(50).Microseconds()), "p50-µs")
				b.ReportMetric(float64(r.Percentile(99).Microseconds()), "p99-µs")
				b.ReportMetric(float64(r.Percentile(99.9).Microseconds()), "p999-µs")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// cost is what requests take while there is always a next one: how many are answered in a second, and what one takes.
type cost struct{ rate, processor, objects, bytes float64 }

// saturate reports what a request takes while there is always a next one, and returns how many are answered in a second.
func saturate(b *testing.B, s *servers.Server, stream load.Stream) (rate float64) {
	b.Helper()
	var all [3]cost
	for i := range all {
		all[i] = saturateOnce(b, s, stream)
	}
	median := func(of func(c cost) float64) float64 {
		values := []float64{of(all[0]), of(all[1]), of(all[2])}
		slices.Sort(values)
		return values[1]
	}
	rate = median(func(c cost) float64 { return c.rate })
	b.ReportMetric(rate, "req/s")
	b.ReportMetric(median(func(c cost) float64 { return c.processor }), "cpu-µs/req")
	b.ReportMetric(median(func(c cost) float64 { return c.objects }), "objects/req")
	b.ReportMetric(median(func(c cost) float64 { return c.bytes }), "bytes/req")
	return rate
}

// saturateOnce leaves out what it takes to ask the server for its allocations, which is more for ours.
func saturateOnce(b *testing.B, s *servers.Server, stream load.Stream) (c cost) {
	b.Helper()
	objects, bytes := allocated(b, s)
	asking, askingBytes := allocated(b, s)
	began := s.Processor(b)
	r := send(b, s, stream, 0, time.Second)
	used := s.Processor(b) - began
	objectsThen, bytesThen := allocated(b, s)
	n := float64(len(r.Took))
	return cost{
		rate: r.Rate, processor: float64(used.Nanoseconds()) / 1000 / n,
		objects: (objectsThen - asking - (asking - objects)) / n, bytes: (bytesThen - askingBytes - (askingBytes - bytes)) / n,
	}
}

func allocated(b *testing.B, s *servers.Server) (objects, bytes float64) {
	b.Helper()
	objects, bytes, err := s.Allocated(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return objects, bytes
}

func send(b *testing.B, s *servers.Server, stream load.Stream, warm, d time.Duration) load.Result {
	b.Helper()
	results, err := load.Run(b.Context(), load.Options{
		Address: s.Address, Core: machine.GeneratorCore, Warm: warm, For: d, Seed: 1,
	}, stream)
	if err != nil {
		b.Fatal(err)
	}
	r := results[0]
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
