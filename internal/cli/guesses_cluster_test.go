package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// guessed is the status that an instance answers a password with, behind a proxy that names the address.
func (r *revocable) guessed(by operated, from, name, password string) (status int, body string) {
	r.t.Helper()
	form := url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, by.clients+"/token", strings.NewReader(form.Encode()))
	check.OK(r.t, err)
	req.SetBasicAuth(r.legacy.ClientID, r.legacy.ClientSecret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Forwarded-For", from)
	return send(r.t, req)
}

// deniedSoon guesses at an instance until it denies a guess, and checks that it admitted few.
func (r *revocable) deniedSoon(by operated, name, reason string, from func(i int) string) {
	r.t.Helper()
	for i := range 5 {
		status, body := r.guessed(by, from(i), name, "wrong")
		if status == http.StatusTooManyRequests && strings.Contains(body, reason+"; retry after") {
			return
		}
		if status != http.StatusBadRequest {
			r.t.Fatalf("status %d: %s", status, body)
		}
	}
	r.t.Errorf("guesses as %s pass at another instance", name)
}

// roomNeeded is longer than the test of guesses takes. A limit admits one more request when its
// next window starts, so no window may start during the test.
const roomNeeded = 3 * time.Minute

// awaitDay waits for the next day of UTC if this one is nearly over.
func awaitDay(t *testing.T) {
	t.Helper()
	if left := leftOf(24 * time.Hour); left < roomNeeded {
		select {
		case <-time.After(left):
		case <-t.Context().Done():
		}
	}
}

// longWait returns a window of about an hour that does not end soon.
func longWait() time.Duration {
	w := time.Hour
	for leftOf(w) < roomNeeded {
		w -= time.Minute
	}
	return w
}

// leftOf returns the time left of a window of that length. Windows are aligned to the epoch.
func leftOf(w time.Duration) time.Duration {
	return w - time.Duration(time.Now().UnixNano())%w
}

// Wrong passwords at one instance count at the other: per username and address, for a day, and per
// username from all addresses; above that limit, new addresses are slowed down. The same holds for
// a username without a user.
func TestGuessesCountEverywhere(t *testing.T) {
	awaitDay(t)
	r := newRevocable(t, "--trusted-proxies", "127.0.0.1", "--failed-attempts-users-per-name-daily", "6",
		"--failed-attempts-users-slow-after", "12", "--failed-attempts-users-slow-wait", longWait().String())
	first, second := r.instances[0], r.instances[1]
	const home, attacker = "198.51.100.1", "203.0.113.1"
	if status, body := r.guessed(first, home, "ada", adaPassword); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	for _, name := range []string{"ada", "nobody"} {
		for range 6 {
			if status, body := r.guessed(first, attacker, name, "wrong"); status != http.StatusBadRequest {
				t.Fatalf("a guess as %s: status %d: %s", name, status, body)
			}
		}
		for _, o := range r.instances {
			r.deniedSoon(o, name, "Too many failed attempts with this username from this address", func(int) string { return attacker })
		}
		status, _ := r.guessed(second, attacker, name, adaPassword)
		check.Equal(t, "status of the right password", status, http.StatusTooManyRequests)

		network := func(n int) func(int) string {
			return func(i int) string { return fmt.Sprintf("203.0.113.%d", n+i) }
		}
		for i := range 4 { // at most two more passed above
			status, body := r.guessed(first, network(10)(i), name, "wrong")
			if status != http.StatusBadRequest {
				t.Fatalf("status %d: %s", status, body)
			}
		}
		for i, o := range r.instances {
			r.deniedSoon(o, name, "Too many failed attempts with this username", network(20+10*i))
		}
	}
	status, body := r.guessed(second, "203.0.113.99", "ada", adaPassword)
	if status != http.StatusTooManyRequests {
		t.Errorf("a new address: status %d: %s", status, body)
	}
	for _, o := range []operated{second, first, second} {
		if status, body := r.guessed(o, home, "ada", adaPassword); status != http.StatusOK {
			t.Errorf("a known address: status %d: %s", status, body)
		}
		if status, body := r.guessed(o, "203.0.113.98", "ada", "wrong"); status != http.StatusBadRequest { // the row has ended
			t.Errorf("a new address, after a right password: status %d: %s", status, body)
		}
	}
}

// TestUnlockedUserEverywhere: an operator ends the slow-down of a user, for new addresses at every
// instance, and what an address has used up stays.
func TestUnlockedUserEverywhere(t *testing.T) {
	awaitDay(t)
	r := newRevocable(t, "--trusted-proxies", "127.0.0.1", "--failed-attempts-users-per-name-daily", "6",
		"--failed-attempts-users-slow-after", "12", "--failed-attempts-users-slow-wait", longWait().String())
	const attacker = "203.0.113.1"
	fill := func(network int) {
		for i := range 12 {
			_, _ = r.guessed(r.instances[0], fmt.Sprintf("203.0.113.%d", network+i%2), "ada", "wrong")
		}
		for _, o := range r.instances {
			r.deniedSoon(o, "ada", "Too many failed attempts with this username", func(i int) string {
				return fmt.Sprintf("203.0.113.%d", network+10+i)
			})
		}
	}
	for _, network := range []int{1, 101} { // the second row began at a right password
		fill(network)
		runOK(t, "", r.on("user", "unlock", "ADA")...)
		for i, o := range r.instances {
			if status, body := r.guessed(o, fmt.Sprintf("198.51.100.%d", network+i), "ada", adaPassword); status != http.StatusOK {
				t.Errorf("a new address after the row was ended: status %d: %s", status, body)
			}
		}
	}
	if status, body := r.guessed(r.instances[0], attacker, "ada", adaPassword); status != http.StatusTooManyRequests {
		t.Errorf("an address whose day is used up: status %d: %s", status, body)
	}
	runFails(t, command.ExitFailed, `there is no user "nobody"`, "", r.on("user", "unlock", "nobody")...)
}
