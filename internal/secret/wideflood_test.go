package secret

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// in48 returns an attempt with its own name from a source in a /56 of a /48.
func in48(name string, wide, narrow, source int) Attempt {
	site, customer := fmt.Sprintf("site %d", wide), fmt.Sprintf("customer %d.%d", wide, narrow)
	return Attempt{
		Name: name, Password: name, Networks: []string{site, customer},
		Source: fmt.Sprintf("source %d.%d.%d", wide, narrow, source),
	}
}

// wideFloods are floods that fill more than three seconds of 140 ms turns, with a different name
// for each attempt.
var wideFloods = map[string]func(i int) Attempt{
	"20 addresses": func(i int) Attempt { return Attempt{Source: fmt.Sprint("address ", i%20)} },
	"20 addresses, 8 at a time": func(i int) Attempt {
		return Attempt{Source: fmt.Sprint("address ", i/8%20)}
	},
	"a /56":       func(i int) Attempt { return in48("", 1, 1, i%256) },
	"a /48":       func(i int) Attempt { return in48("", 1, i%256, i%1000) },
	"one address": func(int) Attempt { return Attempt{Source: "address"} },
}

// flooded starts such a flood while the only turn is taken.
func flooded(t *testing.T, flood func(i int) Attempt) (s *slow, giveBack func()) {
	t.Helper()
	s = newSlow(t, PasswordOptions{Concurrency: 1})
	s.takes = 140 * time.Millisecond
	s.attempt("first", "X", "so that it is known how long a hash takes")
	s.group.Wait()
	s.hashed = nil
	giveBack = takeTurn(t, s.Passwords)
	for i := range 400 {
		a := flood(i)
		a.Name = fmt.Sprint("stranger ", i)
		a.Password = fmt.Sprint("flood ", i)
		s.start(a)
	}
	return s, giveBack
}

// wantSoon checks that the attempt with the password was hashed after at most before others.
func (s *slow) wantSoon(t *testing.T, password string, before int) {
	t.Helper()
	if n := slices.Index(s.hashed, password); n < 0 || n > before {
		t.Errorf("%d were hashed before %s, want at most %d; it failed with %v", n, password, before, s.failed[password])
	}
}

// TestKnownWaitForFew: whatever an unknown flood is, attempts of known users wait for at most one
// attempt of the flood, even with its names and sources.
func TestKnownWaitForFew(t *testing.T) {
	for name, flood := range wideFloods {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, giveBack := flooded(t, flood)
				s.start(Attempt{Name: "bob", Source: "Y", Password: "elsewhere", Known: true})
				giveBack()
				s.group.Wait()
				s.wantSoon(t, "elsewhere", 1)
				wantIdle(t, s.Passwords)

				s, giveBack = flooded(t, flood)
				a := flood(0)
				a.Name, a.Password, a.Known = "stranger 0", "as one of them", true
				s.start(a)
				giveBack()
				s.group.Wait()
				s.wantSoon(t, "as one of them", 1)
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestNewcomersGetATurn: an unknown attempt from another network waits for one attempt of each
// network of the flood.
func TestNewcomersGetATurn(t *testing.T) {
	for name, before := range map[string]int{
		"20 addresses": 20, "20 addresses, 8 at a time": 20, "a /56": 1, "a /48": 1, "one address": 4,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, giveBack := flooded(t, wideFloods[name])
				s.attempt("bob", "Y", "bob's")
				giveBack()
				s.group.Wait()
				s.wantSoon(t, "bob's", before)
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestNeighboursGetATurn: within the /48 of a flood too, a smaller network that sends less goes
// first.
func TestNeighboursGetATurn(t *testing.T) {
	for name, a := range map[string]Attempt{
		"another /56": in48("bob", 1, 2, 1), "another /64": in48("bob", 1, 1, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, giveBack := flooded(t, func(i int) Attempt { return in48("", 1, 1, i%4) })
				s.start(a)
				giveBack()
				s.group.Wait()
				s.wantSoon(t, "bob", 4)
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestKnownAndUnknownShareTurns: known attempts get three of four turns, however many of each class
// there are.
func TestKnownAndUnknownShareTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1})
		giveBack := takeTurn(t, s.Passwords)
		for i := range 12 {
			s.start(Attempt{Name: fmt.Sprint("a", i), Source: fmt.Sprint("a", i), Password: "u"})
			s.start(Attempt{Name: fmt.Sprint("b", i), Source: fmt.Sprint("b", i), Password: "K", Known: true})
		}
		giveBack()
		s.group.Wait()
		if got, want := strings.Join(s.hashed, ""), "KKKuKKKuKKKuKKK"+"uuuuuuuuu"; got != want {
			t.Errorf("hashed in the order %s, want %s", got, want)
		}
		wantIdle(t, s.Passwords)
	})
}

// TestKnownFloodRefusesNoUnknown: a newcomer is queued although known attempts fill three seconds.
func TestKnownFloodRefusesNoUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, giveBack := flooded(t, func(i int) Attempt { return Attempt{Source: fmt.Sprint("address ", i), Known: true} })
		s.attempt("bob", "Y", "bob's")
		giveBack()
		s.group.Wait()
		s.wantSoon(t, "bob's", 4)
		wantIdle(t, s.Passwords)
	})
}

// TestKnownAreBounded: a known user has two attempts in the queue, and a source four.
func TestKnownAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		name   func(int) string
		before int
	}{
		"one user":  {always("alice"), perName},
		"any users": {numbered("user "), perSource},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, PasswordOptions{Concurrency: 1})
				giveBack := takeTurn(t, s.Passwords)
				for i := range 100 {
					s.start(Attempt{Name: tc.name(i), Source: "X", Password: fmt.Sprint("flood ", i), Known: true})
				}
				s.start(Attempt{Name: "bob", Source: "Y", Password: "bob's", Known: true})
				giveBack()
				s.group.Wait()
				s.wantSoon(t, "bob's", tc.before)
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestRoomIsForNetworksWithFewer: if the names of one source fill the room for attempts held back,
// an attempt from another source that waits for its name still gets a place.
func TestRoomIsForNetworksWithFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1, Queue: 10})
		giveBack := takeTurn(t, s.Passwords)
		s.flood(30, numbered("user "), always("X"))
		s.flood(2, always("bob"), always("Z"))
		s.attempt("bob", "Y", "bob's")
		giveBack()
		s.group.Wait()
		s.wantSoon(t, "bob's", 7)
		wantIdle(t, s.Passwords)
	})
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

// TestTurnsHadAreForgotten: the state kept of networks that have had a turn is bounded.
func TestTurnsHadAreForgotten(t *testing.T) {
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
