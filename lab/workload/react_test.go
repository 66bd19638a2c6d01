package workload_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/workload"
)

// once returns a client that calls once a minute, for the duration of one call: the test only uses
// the first.
func once(clients string) workload.Spec {
	return workload.Spec{Clients: clients, Requests: 1, Window: 24 * time.Hour, Rate: 1, Duration: 40 * 24 * time.Hour, Seed: 3}
}

// sent returns the times after which the first call's request is sent again if all are denied.
func sent(t *testing.T, clients string, answer traffic.Answer) (after []time.Duration) {
	t.Helper()
	src := workload.New(once(clients))
	var r traffic.Request
	check.Equal(t, "a request", src.Next(&r), true)
	first := r.At
	for last := first; ; last = r.At {
		src.Answer(&r, answer)
		if !src.Next(&r) || r.At.Sub(first) > 10*time.Minute {
			return after
		}
		after = append(after, r.At.Sub(last))
	}
}

var refused = traffic.Answer{Outcome: traffic.Denied, RetryAfter: 2300 * time.Millisecond}

func TestRetries(t *testing.T) {
	t.Parallel()
	check.Equal(t, "ignore", len(sent(t, workload.Ignore, refused)), 0)
	check.Equal(t, "x/oauth2", len(sent(t, workload.XOAuth2, refused)), 0)

	hammered := sent(t, workload.Hammer, refused)
	check.Equal(t, "hammered for ten minutes", len(hammered), 600)
	check.Equal(t, "each second", hammered[7], time.Second)

	obeyed := sent(t, workload.RetryAfter, refused)
	check.Equal(t, "obeyed for ten minutes", len(obeyed), 200)
	check.Equal(t, "in whole seconds, as the field is", obeyed[0], 3*time.Second)

	var shortest, longest time.Duration = time.Hour, 0
	for _, d := range sent(t, workload.RetryAfterJitter, refused) {
		shortest, longest = min(shortest, d), max(longest, d)
	}
	check.Equal(t, "jitter from 3 s", shortest >= 3*time.Second && shortest < 3300*time.Millisecond, true)
	check.Equal(t, "jitter to 6 s", longest <= 6*time.Second && longest > 5700*time.Millisecond, true)

	for i, d := range sent(t, workload.Backoff, traffic.Answer{Outcome: traffic.Banned}) {
		if most := min(2*time.Second<<min(i, 10), 64*time.Second); d > most {
			t.Errorf("back-off %d is %v, want at most %v", i+1, d, most)
		}
	}
}

// busy returns a client that calls ten times a second for a day.
func busy(clients string) workload.Spec {
	return workload.Spec{Clients: clients, Requests: 600, Window: time.Minute, Rate: 1, Duration: 24 * time.Hour}
}

// TestTokensAreKept: tokens are kept until the library no longer uses them.
func TestTokensAreKept(t *testing.T) {
	t.Parallel()
	for clients, early := range map[string]time.Duration{
		workload.XOAuth2: 10 * time.Second, workload.Authlib: time.Minute, workload.OpenIDClient: 0, workload.Considerate: time.Minute,
	} {
		requests := all(t, busy(clients))
		for i := range requests[1:] {
			kept := requests[i+1].At.Sub(requests[i].At)
			if least := time.Hour - early; kept < least || kept > least+3*time.Second {
				t.Fatalf("%s: a token is kept for %v, want %v", clients, kept, least)
			}
		}
		check.Equal(t, clients+": requests in a day", len(requests) >= 24 && len(requests) <= 25, true)
	}
}

// TestErrorOfTheCall: without a token, each call of a library that does not retry is a request.
func TestErrorOfTheCall(t *testing.T) {
	t.Parallel()
	calls := len(all(t, busy(workload.Ignore)))
	src, n := workload.New(busy(workload.XOAuth2)), 0
	var r traffic.Request
	for src.Next(&r) {
		n++
		src.Answer(&r, refused)
	}
	check.Equal(t, "requests", n, calls)
}

// TestCallsWait: a considerate client has one request at a time, however many calls it makes, even
// while a request is queued.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	src := workload.New(busy(workload.Considerate))
	var r traffic.Request
	check.Equal(t, "a request", src.Next(&r), true)
	for range 20 {
		last := r.At
		src.Answer(&r, refused)
		check.Equal(t, "another", src.Next(&r), true)
		check.Equal(t, "not before Retry-After", r.At.Sub(last) >= 3*time.Second, true)
	}
	held := r
	src.Answer(&held, traffic.Answer{Outcome: traffic.Delayed, Wait: 30 * time.Second})
	check.Equal(t, "another", src.Next(&r), true)
	kept := r.At.Sub(held.At)
	check.Equal(t, "the token lives from when it was issued", kept >= time.Hour-30*time.Second && kept < time.Hour-27*time.Second, true)
}

// TestLateAnswers: an answer to a queued request comes after later requests. A retry never comes
// before these.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	src := workload.New(busy(workload.Hammer))
	var first, r traffic.Request
	check.Equal(t, "a request", src.Next(&first), true)
	for range 100 {
		check.Equal(t, "a request", src.Next(&r), true)
		src.Answer(&r, traffic.Answer{Outcome: traffic.Admitted})
	}
	src.Answer(&first, refused)
	last := r.At
	check.Equal(t, "the retry", src.Next(&r), true)
	check.Equal(t, "not before the last request", r.At, last)
}
