package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// until waits until the condition holds.
func until(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	deadline := time.After(startTimeout)
	for !condition() {
		select {
		case <-deadline:
			tb.Fatalf("not in time: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestOneAccountBlocksNoOtherSignIn: while 150 connections repeat the right password of one account,
// another user signs in before most of them, from another address and from the same.
func TestOneAccountBlocksNoOtherSignIn(t *testing.T) {
	const connections, passed = 150, 40
	t.Setenv("OAUTH_PASSWORDS_PROCESSES", "off") // those of the lowest priority have no time beside other tests
	for name, address := range map[string]string{"another address": otherAddress, "the same address": floodAddress} {
		t.Run(name, func(t *testing.T) {
			s := start(t, unlimited+manySignIns)
			f := s.flood(connections)
			defer f.stop()
			until(t, "the flood is under way", func() bool { return f.accepted.Load() >= 5 })
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
		if err != nil {
			t.Fatal(err)
		}
		if err := s.signInRequest(t.Context(), floodAddress, user).Write(conn); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "every sign-in is in the log", func() bool { return strings.Count(s.logs.String(), "path=/sign-in") >= connections })
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
			if err != nil {
				t.Fatal(err)
			}
			statuses = append(statuses, status)
		}
	}
	if want := []int{303, 303, 303, 429, 303}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
}

// BenchmarkSignInDuringFlood is how long a user waits to be signed in while connections repeat the right
// password of another account: from another address, and from the same.
//
//	go test -run '^$' -bench SignInDuringFlood -benchtime 20x ./internal/e2e
func BenchmarkSignInDuringFlood(b *testing.B) {
	for _, connections := range []int{0, 150, 1050} {
		for name, address := range map[string]string{"elsewhere": otherAddress, "same": floodAddress} {
			b.Run(name+"/connections="+strconv.Itoa(connections), func(b *testing.B) {
				s := start(b, unlimited+quiet+manySignIns)
				f := s.flood(connections)
				until(b, "the flood is under way", func() bool { return connections == 0 || f.accepted.Load() >= 20 })
				client := newHTTPClient(b)
				took, refused := make([]time.Duration, b.N), 0
				b.ResetTimer()
				for i := range took {
					began := time.Now()
					status, err := s.signInStatus(client, s.signInRequest(b.Context(), address, secondUser))
					if took[i] = time.Since(began); err != nil || status != http.StatusSeeOther {
						refused++
					}
				}
				b.StopTimer()
				f.stop()
				slices.Sort(took)
				b.ReportMetric(float64(took[b.N/2].Milliseconds()), "p50-ms")
				b.ReportMetric(float64(took[b.N-1].Milliseconds()), "max-ms")
				b.ReportMetric(float64(refused), "refused")
			})
		}
	}
}
