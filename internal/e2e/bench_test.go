package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
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

// BenchmarkTokenFromStart is how long it takes from starting the process on a
// store with clients in it until the first token is there.
func BenchmarkTokenFromStart(b *testing.B) {
	s := start(b, unlimited+quiet)
	for range b.N {
		b.StopTimer()
		s.kill()
		b.StartTimer()
		s.up()
		s.connect(0).token("shop", "grant_type=client_credentials")
	}
}

// BenchmarkTokenDuringSignIns is what a machine notices of 200 people who sign
// in all the time: hashing passwords is slow on purpose and must not starve it.
// Compare with BenchmarkTokenClientCredentials/clients=1.
func BenchmarkTokenDuringSignIns(b *testing.B) {
	s := start(b, unlimited+quiet+"passwords: { sign_ins_per_minute: 1000000 }\n")
	ctx, cancel := context.WithCancel(b.Context())
	var people sync.WaitGroup
	c, hc := s.config("legacy"), newHTTPClient(b)
	for range 200 {
		people.Go(func() {
			ctx := context.WithValue(ctx, oauth2.HTTPClient, hc)
			for ctx.Err() == nil {
				_, _ = c.PasswordCredentialsToken(ctx, user, password) // turned away or not, they try again
			}
		})
	}
	machine := s.connect(0)
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		machine.token("shop", "grant_type=client_credentials")
		took[i] = time.Since(began)
	}
	b.StopTimer()
	cancel()
	people.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
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
