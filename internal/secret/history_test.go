package secret

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

// The tests in this file check the effects of earlier rounds in a process that is never idle.

// floodBefore returns how many attempts of a flood were hashed before the attempt with the
// password.
func (s *slow) floodBefore(t *testing.T, password string) (n int) {
	t.Helper()
	at := slices.Index(s.hashed, password)
	if at < 0 {
		t.Errorf("%s was not hashed: %v", password, s.failed[password])
		return 0
	}
	for _, p := range s.hashed[:at] {
		if strings.HasPrefix(p, "flood ") {
			n++
		}
	}
	return n
}

// TestServedLateDelaysNoOther: an attempt that was long held back because of its source is served
// late. Attempts of others that were held back in the same time still go before newer ones.
func TestServedLateDelaysNoOther(t *testing.T) {
	for name, takes := range map[string]time.Duration{"in time": 10 * time.Millisecond, "all in three seconds": 80 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, PasswordOptions{Concurrency: 1})
				s.takes = takes
				giveBack := takeSlot(t, s.Passwords)
				for i := range 5 { // the fifth is held back
					s.attempt(fmt.Sprint("z", i), "Z", "z")
				}
				for i := range 60 { // a large network with one attempt from each source
					own := fmt.Sprint("w", i)
					s.start(Attempt{Name: own, Source: own, Networks: []string{"W"}, Password: "w"})
				}
				s.attempt("bob", "Q1", "q")
				s.attempt("bob", "Q2", "q")
				s.attempt("bob", "Y", "bob's") // held back, because two with this name are in the queue
				giveBack()
				<-time.After(takes * 3 / 2) // the first of Z is hashed, and the fifth enters the queue
				synctest.Wait()
				s.flood(100, always("bob"), always("X"))
				s.group.Wait()
				if n := s.floodBefore(t, "bob's"); n > perName {
					t.Errorf("%d that came later were hashed before bob's, want at most %d", n, perName)
				}
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestSignInsOfTheDayDelayNoOther: an address with many earlier sign-ins goes before a flood from
// its network, however long the process has been busy, and whatever is recorded about other
// addresses.
func TestSignInsOfTheDayDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 2})
		s.takes = 10 * time.Millisecond
		at := func(network, source, name string) {
			s.start(Attempt{Name: name, Source: source, Networks: []string{network}, Password: name})
		}
		giveBack := takeSlot(t, s.Passwords)
		others := 0
		busy := func(n int, wait time.Duration) { // another network, which always has waiting attempts
			for range n {
				others++
				own := fmt.Sprint("other ", others)
				at("busy", own, own)
			}
			<-time.After(wait)
			synctest.Wait()
		}
		busy(90, 0)
		giveBack()
		for i := range 30 {
			at("N", "office", fmt.Sprint("colleague ", i))
			busy(3, 20*time.Millisecond)
		}
		busy(110, 450*time.Millisecond)
		at("N", "next door", "one neighbour")
		busy(0, 50*time.Millisecond)
		busy(30, 200*time.Millisecond)
		at("N", "one more door", "another neighbour")
		busy(40, 50*time.Millisecond)
		for i := range 160 {
			if i == 20 {
				at("N", "office", "bob's")
			}
			at("N", fmt.Sprint("flooder ", i%4), fmt.Sprint("flood ", i))
		}
		s.group.Wait()
		if n := s.floodBefore(t, "bob's"); n > 8 {
			t.Errorf("%d of the flood were hashed before bob's, want at most two from each of its addresses", n)
		}
		wantIdle(t, s.Passwords)
	})
}

// TestNewestOfEqualsIsRefused: if the queue is full of addresses with one attempt each, another
// such attempt is refused, even if the process has been busy for long.
func TestNewestOfEqualsIsRefused(t *testing.T) {
	for _, earlier := range []int{0, 5} {
		t.Run(fmt.Sprint(earlier, " earlier"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, PasswordOptions{Concurrency: 1, Queue: 10})
				giveBack := takeSlot(t, s.Passwords)
				if earlier > 0 {
					s.flood(earlier, numbered("e"), always("E"))
					giveBack()
					<-time.After(s.takes*time.Duration(earlier) - time.Millisecond) // the last is being hashed
					synctest.Wait()
					giveBack = func() {}
				}
				var order []string
				for i := range 13 {
					own := string(rune('a' + i))
					order = append(order, own)
					s.attempt(own, own, own)
				}
				giveBack()
				s.group.Wait()
				check.Equal(t, "hashed", s.hashed[earlier:], order[:10])
				for _, own := range order[10:] {
					wantBusy(t, s.failed[own], longest)
				}
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestNewcomersDuringALastingFlood: for a minute 20 addresses send two attempts a second each, six
// times the hashing capacity, and every second another user sends one.
func TestNewcomersDuringALastingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1})
		s.takes = 149 * time.Millisecond
		send := func(every time.Duration, source func(n int) string) {
			s.group.Go(func() {
				for n := range int(time.Minute / every) {
					<-time.After(every)
					name := fmt.Sprint(source(n), " ", n)
					s.group.Go(func() {
						err := s.RejectAttempt(t.Context(), Attempt{Name: name, Source: source(n), Password: name})
						if err != nil && strings.HasPrefix(name, "new") {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
			})
		}
		for i := range 20 {
			<-time.After(7 * time.Millisecond)
			send(time.Second/2, always(fmt.Sprint("address ", i)))
		}
		send(time.Second, numbered("new "))
		s.group.Wait()
		wantIdle(t, s.Passwords)
	})
}

// TestPastRoundsAreForgotten: the state kept of networks that have been served is bounded.
func TestPastRoundsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1, Queue: 2})
		defer s.group.Wait()
		most := 0
		for i := range 500 {
			s.start(in48(fmt.Sprint("user ", i), i, i, i))
			s.queue.mu.Lock()
			most = max(most, s.queue.size())
			s.queue.mu.Unlock()
			<-time.After(19 * time.Millisecond)
		}
		if most < 10 || most > 2*2*groupsPerRoom+20 {
			t.Errorf("up to %d lines were kept", most)
		}
	})
}
