package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// manySignIns is a configuration for floods of sign-ins: those of one account are not limited, so that
// what is left of the protection is the order in which passwords are checked.
const manySignIns = "trusted_proxies: [ 127.0.0.1/32 ]\npasswords: { sign_ins_per_minute: 1000000, concurrency: 1 }\n"

// The addresses that the requests of these tests come from.
const (
	floodAddress = "192.0.2.1"
	otherAddress = "198.51.100.7"
)

// signInRequest is the form of the sign-in page, sent by a browser at that address.
func (s *server) signInRequest(ctx context.Context, address, username string) *http.Request {
	form := url.Values{"username": {username}, "password": {password}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Issuer+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		panic(err) // the address is well-formed
	}
	r.Header.Set("Content-Type", formType)
	r.Header.Set("X-Forwarded-For", address)
	return r
}

// signInStatus signs in and returns the status.
func (s *server) signInStatus(client *http.Client, r *http.Request) (int, error) {
	res, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// flood is connections that repeat the right password of one user.
type flood struct {
	accepted atomic.Int64
	refused  atomic.Int64
	stop     func()
}

// flood lets n connections of the user sign in over and over, until stop.
func (s *server) flood(n int) *flood {
	ctx, cancel := context.WithCancel(s.tb.Context())
	client := newHTTPClient(s.tb)
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = n //nolint:forcetypeassert // newHTTPClient made it
	f := &flood{}
	var connections sync.WaitGroup
	for range n {
		connections.Go(func() {
			for ctx.Err() == nil {
				switch status, err := s.signInStatus(client, s.signInRequest(ctx, floodAddress, user)); {
				case err != nil:
				case status == http.StatusSeeOther:
					f.accepted.Add(1)
				default:
					f.refused.Add(1)
				}
			}
		})
	}
	f.stop = func() { cancel(); connections.Wait() }
	return f
}

// TestOneAccountBlocksNoOtherSignIn: while 150 connections repeat the right password of one account,
// another user signs in before most of them, from another address and from the same.
func TestOneAccountBlocksNoOtherSignIn(t *testing.T) {
	const connections, passed = 150, 40
	for name, address := range map[string]string{"another address": otherAddress, "the same address": floodAddress} {
		t.Run(name, func(t *testing.T) {
			s := start(t, unlimited+manySignIns)
			f := s.flood(connections)
			defer f.stop()
			check.Eventually(t, "the flood is under way", func() bool { return f.accepted.Load() >= 5 })
			before := f.accepted.Load()
			status, err := s.signInStatus(newHTTPClient(t), s.signInRequest(t.Context(), address, secondUser))
			if err != nil || status != http.StatusSeeOther {
				t.Fatalf("status %d, %v", status, err)
			}
			if n := f.accepted.Load() - before; n > passed {
				t.Errorf("%d sign-ins of the flood went first, want at most %d", n, passed)
			}
		})
	}
}

// TestNothingIsHashedForThoseWhoHungUp: of sign-ins whose connections are closed at once, few are done.
func TestNothingIsHashedForThoseWhoHungUp(t *testing.T) {
	const connections, done = 100, 30
	s := start(t, unlimited+manySignIns)
	for range connections {
		conn, err := net.Dial("tcp4", strings.TrimPrefix(s.Issuer, "http://"))
		check.OK(t, err)
		check.OK(t, s.signInRequest(t.Context(), floodAddress, user).Write(conn))
		check.OK(t, conn.Close())
	}
	check.Eventually(t, "every sign-in is in the log", func() bool { return strings.Count(s.logs.String(), "path=/sign-in") >= connections })
	if n := strings.Count(s.logs.String(), "path=/sign-in status=303"); n > done {
		t.Errorf("%d passwords were checked for callers who had gone, want at most %d", n, done)
	}
}

// TestSignInsOfOneAccountAreLimited: over the limit sign-ins are refused, and another user of the same
// address is not concerned.
func TestSignInsOfOneAccountAreLimited(t *testing.T) {
	minute := func() time.Time { return time.Now().Truncate(time.Minute) }
	var statuses []int
	for began := (time.Time{}); !began.Equal(minute()); { // again if the minute ended, which begins a new count
		began, statuses = minute(), nil
		s := start(t, unlimited+"passwords: { sign_ins_per_minute: 3 }\n")
		client := newHTTPClient(t)
		for _, name := range []string{user, user, user, user, secondUser} {
			status, err := s.signInStatus(client, s.signInRequest(t.Context(), "", name))
			check.OK(t, err)
			statuses = append(statuses, status)
		}
	}
	check.Equal(t, "statuses", statuses, []int{303, 303, 303, 429, 303})
}

// TestOneUserHoweverTyped: every way to type a name is the same user, with one sub and one limit, on the
// sign-in page and in the password grant.
func TestOneUserHoweverTyped(t *testing.T) {
	s := start(t, limited(3, "1h", ""))
	ctx := with(t)
	c := s.config("legacy")
	for _, name := range []string{strings.ToUpper(user), "\uff21da", user} {
		token, err := c.PasswordCredentialsToken(ctx, name, password)
		check.OK(t, err, name)
		check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
	}
	_, err := c.PasswordCredentialsToken(ctx, strings.ToUpper(user), password)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	_, err = c.PasswordCredentialsToken(ctx, user+" b", password)
	requireRefused(t, err, http.StatusBadRequest, "invalid_grant")

	web, b := s.config("web"), newBrowser(t)
	verifier := oauth2.GenerateVerifier()
	b.open(web.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)))
	b.submit("/sign-in", "username", user+" b", "password", password)
	if !strings.Contains(b.page.text, "Check the user name") {
		t.Errorf("the page does not say that the user name is at fault:\n%s", b.page.text)
	}
	b.submit("/sign-in", "username", strings.ToUpper(user), "password", password)
	b.submit("/consent", "decision", "allow")
	token, err := web.Exchange(ctx, b.sentTo().Query().Get("code"), oauth2.VerifierOption(verifier))
	check.OK(t, err)
	check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
}

// TestWrongPasswordsCountForAllFormsOfAName: a name in other case is not another name to try.
//
// Attack (usernames): A new limit for every spelling. All spellings share one user and one
// limit. Also e2e.TestOneUserHoweverTyped, grants.TestOneNameHoweverTyped.
func TestWrongPasswordsCountForAllFormsOfAName(t *testing.T) {
	s := start(t, unlimited+"failed_attempts: { window: 24h, users: { per_name: 3 } }\n") // over the end of a window one more passes
	ctx := with(t)
	c := s.config("legacy")
	for _, name := range []string{"ada", "Ada", "ADA"} {
		_, err := c.PasswordCredentialsToken(ctx, name, "wrong")
		requireRefused(t, err, http.StatusBadRequest, "invalid_grant")
	}
	_, err := c.PasswordCredentialsToken(ctx, "aDa", password)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
}
