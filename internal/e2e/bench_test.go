package e2e

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/app/repositories"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bolt"
)

// The benchmarks run the server as its own process on the embedded store and
// talk to it over loopback HTTP with kept-alive connections. Each refresh and
// each code is durable before its answer comes, so one client alone waits for
// the disk, and many share their commits: 64 should get at least 8 times the
// throughput of one where the disk, and not the processor, is what one waits
// for.
//
//	go test -run '^$' -bench Token -benchtime 2s ./internal/e2e
func BenchmarkTokenRefresh(b *testing.B) {
	benchmarkTokens(b, "", func(b *testing.B, s *server, clients int) func(*connection, int) {
		b.Helper()
		tokens := make([]string, clients)
		form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
		for i := range tokens {
			tokens[i] = s.post("/token", "legacy", form).object(b)["refresh_token"].(string)
		}
		return func(c *connection, _ int) {
			tokens[c.client] = c.token("legacy", "grant_type=refresh_token&refresh_token="+tokens[c.client]).RefreshToken
		}
	})
}

func BenchmarkTokenCode(b *testing.B) {
	benchmarkTokens(b, manySignIns+"tokens: { code_ttl: 10m }\n", func(b *testing.B, s *server, _ int) func(*connection, int) {
		b.Helper()
		forms := codeForms(b, s, b.N)
		return func(c *connection, i int) { c.token("web", forms[i]) }
	})
}

// BenchmarkTokenClientCredentials is what the same harness makes of a grant
// that needs no store: the difference to the others is the store, and what 64
// clients get here is what the processor allows at most.
func BenchmarkTokenClientCredentials(b *testing.B) {
	benchmarkTokens(b, "", func(*testing.B, *server, int) func(*connection, int) {
		return func(c *connection, _ int) { c.token("shop", "grant_type=client_credentials") }
	})
}

// benchmarkTokens gets b.N tokens with one and with 64 concurrent clients.
func benchmarkTokens(b *testing.B, config string, prepare func(b *testing.B, s *server, clients int) func(c *connection, i int)) {
	b.Helper()
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := start(b, unlimited+quiet+config)
			call := prepare(b, s, clients)
			connections := make([]*connection, clients)
			for i := range connections {
				connections[i] = s.connect(i)
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, c := range connections {
				wg.Go(func() {
					for i := c.client; i < b.N; i += clients {
						call(c, i)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// codeForms makes n token requests that redeem a code each. The codes are put into the store of the
// server, which stops for that: a session gets only a few.
func codeForms(b *testing.B, s *server, n int) []string {
	b.Helper()
	check.Equal(b, "exit status", s.stop(), 0)
	store, err := bolt.Open(s.data(), bolt.Options{})
	check.OK(b, err)
	repositories, err := repositories.On(b.Context(), store)
	check.OK(b, err)
	mac, err := keys.OpenMAC(b.Context(), repositories, keys.Secrets{}, nil)
	check.OK(b, err)
	client, err := repositories.Client(b.Context(), "web")
	check.OK(b, err)
	person, err := repositories.User(b.Context(), user)
	check.OK(b, err)
	forms, now := make([]string, n), time.Now()
	var wg sync.WaitGroup
	const writers = 64 // they share the commits of the store
	for first := range writers {
		wg.Go(func() {
			for i := first; i < n; i += writers {
				random := make([]byte, 20)
				_, _ = rand.Read(random) // which never fails
				code, verifier := grants.SealCode(mac, random), oauth2.GenerateVerifier()
				err := grants.NewRepository(store).CreateGrant(b.Context(), grants.Grant{
					Authorization: grants.Authorization{
						ClientID: "web", Username: user, Scopes: []string{"read"}, Family: secret.ID(), AuthTime: now, UserStamp: person.Stamp,
					},
					ClientStamp: client.Stamp,
					Digest:      secret.DigestOf(code), RedirectURI: loopbackURI, Challenge: oauth2.S256ChallengeFromVerifier(verifier),
					IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute),
				})
				if err != nil {
					b.Error(err)
				}
				forms[i] = url.Values{
					"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {loopbackURI}, "code_verifier": {verifier},
				}.Encode()
			}
		})
	}
	wg.Wait()
	check.OK(b, store.Close())
	s.up()
	return forms
}

// connection is a client that costs little: it shares the processor with the
// server that is measured.
type connection struct {
	tb     testing.TB
	client int
	conn   net.Conn
	reader *bufio.Reader
}

func (s *server) connect(client int) *connection {
	s.tb.Helper()
	conn, err := net.Dial("tcp4", strings.TrimPrefix(s.Issuer, "http://"))
	check.OK(s.tb, err)
	s.tb.Cleanup(func() { _ = conn.Close() })
	return &connection{tb: s.tb, client: client, conn: conn, reader: bufio.NewReader(conn)}
}

func (c *connection) token(clientID, form string) (token oauth2.Token) {
	c.tb.Helper()
	credentials := base64.StdEncoding.EncodeToString([]byte(clientID + ":" + secrets[clientID]))
	_, err := fmt.Fprintf(c.conn, "POST /token HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		c.conn.RemoteAddr(), credentials, formType, len(form), form)
	check.OK(c.tb, err)
	res, err := http.ReadResponse(c.reader, nil)
	check.OK(c.tb, err)
	check.OK(c.tb, json.NewDecoder(res.Body).Decode(&token))
	check.OK(c.tb, res.Body.Close())
	check.Equal(c.tb, "status", res.StatusCode, http.StatusOK)
	return token
}

// BenchmarkTokenLimiter is what the limiter costs of the processor time of a token
// request. Two clients of one server ask by turns; for one of them the limiter is off, and
// the limit of the other is never reached. A second server has it the other way round, as
// clients and processes differ by a few per cent. A round has 20 turns of everything; the
// figure is the median of the rounds, and error-% the standard error of their mean. On
// one core:
//
//	taskset -c 0 go test -run '^$' -bench TokenLimiter -benchtime 40x ./internal/e2e
func BenchmarkTokenLimiter(b *testing.B) {
	clients := [2]string{"shop", "other"}
	var servers [2]*server
	var conns [2]*connection
	for i, off := range clients {
		servers[i] = start(b, quiet+`
rate_limit:
  default: { client: [ { name: l, requests: 1000000000, window: 60s } ] }
  clients: { `+off+`: { mode: "off" } }
`)
		conns[i] = servers[i].connect(0)
	}
	const requests, turns = 50, 20
	spent := func() (off, on time.Duration) {
		for i := range 4 * turns {
			server, client := i/2%2, (i+i/4)%2
			before := servers[server].processorTime()
			for range requests {
				conns[server].token(clients[client], "grant_type=client_credentials")
			}
			if took := servers[server].processorTime() - before; client == server {
				off += took
			} else {
				on += took
			}
		}
		return off, on
	}
	spent() // warm
	var costs, without []float64
	for b.Loop() {
		off, on := spent()
		costs = append(costs, 100*(float64(on)/float64(off)-1))
		without = append(without, float64(off.Nanoseconds())/1000/(2*turns*requests))
	}
	mean, squares := 0.0, 0.0
	for _, cost := range costs {
		mean += cost / float64(len(costs))
	}
	for _, cost := range costs {
		squares += (cost - mean) * (cost - mean)
	}
	b.ReportMetric(median(costs), "limiter-%")
	b.ReportMetric(mean, "mean-%")
	b.ReportMetric(math.Sqrt(squares)/float64(max(len(costs)-1, 1)), "error-%")
	b.ReportMetric(median(without), "off-µs/request")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// processorTime is what all threads of the process have used.
func (s *server) processorTime() (used time.Duration) {
	s.tb.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	check.OK(s.tb, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check.OK(s.tb, err, "this benchmark needs Linux")
		nanoseconds, _, _ := strings.Cut(string(text), " ")
		ran, err := strconv.ParseInt(nanoseconds, 10, 64)
		check.OK(s.tb, err)
		used += time.Duration(ran)
	}
	return used
}
