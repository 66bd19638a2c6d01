// Package abuse_test measures what well-behaved clients notice of others that are not, with the limits of our server
// and without them.
package abuse_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

const (
	good   = 8 // well-behaved clients
	greedy = "greedy"
	user   = "ada"

	form      = "grant_type=client_credentials"
	elsewhere = "127.0.1.1" // the address of attackers that have no client
	password  = "a quiet harbour at four in the morning"

	overload   = 1.2 // times the requests that the server can answer
	overLimit  = 50  // times its limit that the greedy client sends
	signIns    = 200 // per second
	crowd      = 256 // connections of an attack
	inTime     = 100 * time.Millisecond
	goodShare  = 0.01
	goodWindow = 10 * time.Second
)

func nameOf(n int) string { return fmt.Sprintf("good-%d", n%good) }

// nameOfUser returns the user of a sign-in: every tenth is one that there is.
func nameOfUser(n int) string {
	if n%10 == 0 {
		return user
	}
	return fmt.Sprintf("user-%d", n%1000)
}

// off is a server without limits of any kind.
const off = `log: { level: error }
rate_limit: { mode: "off" }
failed_attempts:
  clients: { per_address: 1000000000, per_name: 1000000000 }
  users: { per_address: 1000000000, per_name: 1000000000, per_name_daily: 1000000000, slow_after: 1000000000 }
`

// on has the limits of failed attempts as they are by default, and one on requests. Only the greedy client gets to it.
func on(greedyRate float64) string {
	return fmt.Sprintf(`log: { level: error }
rate_limit:
  default: { client: [ { name: limit, requests: 1000000, window: 10s } ] }
  clients: { %s: { client: [ { name: limit, requests: %d, window: 10s } ] } }
`, greedy, int(greedyRate/overLimit*goodWindow.Seconds()))
}

// BenchmarkAbuse reports what share of the good clients' requests is answered by a token within 100 ms, and their
// p99 from when each was due. They are one in a hundred requests of the greedy client and of wrong secrets, which come
// at 1.2 times the rate that the server answers with tokens.
func BenchmarkAbuse(b *testing.B) {
	free := start(b, off)
	rate := capacity(b, free)
	limited := start(b, on(rate*overload))
	b.ResetTimer()
	for i, a := range attacks(free, rate*overload) {
		for _, limits := range []struct {
			name   string
			server *servers.Server
		}{{"off", free}, {"on", limited}} {
			b.Run("attack="+a.name+"/limits="+limits.name, func(b *testing.B) {
				for b.Loop() {
					attacks(limits.server, rate*overload)[i].measure(b, limits.server, rate*overload*goodShare)
				}
			})
		}
	}
}

// attack is what others send meanwhile.
type attack struct {
	name    string
	streams []load.Stream
}

func attacks(s *servers.Server, rate float64) []attack {
	greedyRequest := s.Request(greedy, s.Secrets[greedy], form)
	return []attack{
		{name: "none"},
		{"over-limit", []load.Stream{servers.Requests(rate, crowd, func(int) []byte { return greedyRequest })}},
		{"wrong-secrets", []load.Stream{servers.Requests(rate, crowd, func(n int) []byte {
			return s.Request(nameOf(n), fmt.Sprintf("%043d", n), form)
		}, elsewhere)}},
		{"sign-ins", []load.Stream{servers.Requests(signIns, crowd, func(n int) []byte {
			return s.Request("login", s.Secrets["login"], fmt.Sprintf("grant_type=password&username=%s&password=wrong-%d", nameOfUser(n), n))
		}, elsewhere)}},
	}
}

func (a *attack) measure(b *testing.B, s *servers.Server, rate float64) {
	b.Helper()
	good := servers.Requests(rate, 2*good, func(n int) []byte { return s.Request(nameOf(n), s.Secrets[nameOf(n)], form) })
	results := servers.Send(b, s, time.Second, 5*time.Second, append([]load.Stream{good}, a.streams...)...)
	r := results[0]
	b.ReportMetric(100*r.Succeeded(inTime), "good-%")
	b.ReportMetric(float64(load.Percentile(r.Took, 50).Microseconds()), "good-p50-µs")
	b.ReportMetric(float64(load.Percentile(r.Took, 99).Microseconds()), "good-p99-µs")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*r.Stalled, "stalled-%")
	b.Logf("good %v, others %s", r.Statuses, statuses(results[1:]))
}

func statuses(results []load.Figures) string {
	var all []string
	for _, r := range results {
		all = append(all, fmt.Sprintf("%v of %d", r.Statuses, len(r.Took)))
	}
	return strings.Join(all, ", ")
}

// start starts our server with the clients and a user.
func start(b *testing.B, config string) *servers.Server {
	b.Helper()
	own := []string{"--grant=client_credentials"}
	all := []servers.Registration{{Name: greedy, Flags: own}, {Name: "login", Flags: []string{"--grant=password"}}, {Name: user, Password: password}}
	for n := range good {
		all = append(all, servers.Registration{Name: nameOf(n), Flags: own})
	}
	return servers.Start(b, config, all...)
}

// capacity returns how many tokens the server issues in a second.
func capacity(b *testing.B, s *servers.Server) float64 {
	b.Helper()
	request := s.Request(greedy, s.Secrets[greedy], form)
	r := servers.Send(b, s, time.Second, 2*time.Second, servers.Requests(0, 64, func(int) []byte { return request }))[0]
	if r.Statuses[http.StatusOK] != len(r.Took) {
		b.Fatalf("answers %v", r.Statuses)
	}
	return r.Rate
}
