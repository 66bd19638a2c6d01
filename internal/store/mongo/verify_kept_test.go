package mongo

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/mongotest"
)

// after picks what the rule picks but for the first n.
func after(n int64, rule func(c bson.D) bool) func(c bson.D) bool {
	var seen atomic.Int64
	return func(c bson.D) bool { return rule(c) && seen.Add(1) > n }
}

// upTo picks the first n of those that the rule picks.
func upTo(n int64, rule func(c bson.D) bool) func(c bson.D) bool {
	var seen atomic.Int64
	return func(c bson.D) bool { return rule(c) && seen.Add(1) <= n }
}

func named(command string) func(c bson.D) bool {
	return func(c bson.D) bool { return c[0].Key == command }
}

// lateFailure is a server that fails while the checks are under way, and what is found all the
// same.
type lateFailure struct {
	name    string
	server  func(t *testing.T, p *mongotest.Proxy) mongotest.Alteration
	options VerifyOptions
	want    map[int]CheckStatus // of the checks that are not ok
	detail  string              // of the first of them
	err     string
}

// polls reports whether a command is one of those that wait for the TTL monitor.
func polls(c bson.D) bool { return c[0].Key == "find" && strings.Contains(c.String(), `"expired"`) }

// stalling is a server that holds up every command that the rule picks until the test ends.
func stalling(rule func(c bson.D) bool) func(*testing.T, *mongotest.Proxy) mongotest.Alteration {
	return func(t *testing.T, _ *mongotest.Proxy) mongotest.Alteration {
		t.Helper()
		return mongotest.Alteration{Answer: func(c bson.D) bson.D {
			if rule(c) {
				<-t.Context().Done()
			}
			return nil
		}}
	}
}

// refusing is a server that answers every command that the rule picks with an error.
func refusing(rule func(c bson.D) bool, code int, codeName, message string) func(*testing.T, *mongotest.Proxy) mongotest.Alteration {
	return func(*testing.T, *mongotest.Proxy) mongotest.Alteration {
		return mongotest.Alteration{Answer: func(c bson.D) bson.D {
			if !rule(c) {
				return nil
			}
			return mongotest.Refusal(code, codeName, message)
		}}
	}
}

func lateFailures() []lateFailure {
	return []lateFailure{
		{
			name: "majority writes stall", want: map[int]CheckStatus{checkWriteConcern: CheckFailed}, detail: "no answer",
			server: stalling(wantsMajority),
		},
		{name: "all commands that make collections stall", server: stalling(named("create"))},
		{
			name: "the collection may not be dropped", err: "remove the scratch collection",
			server: refusing(named("drop"), 13, "Unauthorized", "not allowed"),
		},
		{
			name: "one ping stalls", want: map[int]CheckStatus{checkRoundTrip: CheckFailed}, detail: "no answer",
			server: stalling(upTo(1, after(1, named("ping")))), // the second
		},
		{
			name: "the server goes away", err: "verify",
			want: map[int]CheckStatus{
				checkWhole: CheckUnchecked, checkUpsertByID: CheckUnchecked, checkFindAndModify: CheckUnchecked, checkTTL: CheckUnchecked,
				checkValidators: CheckUnchecked, checkChangeStreams: CheckUnchecked,
			},
			server: func(_ *testing.T, p *mongotest.Proxy) mongotest.Alteration {
				return mongotest.Alteration{Answer: func(c bson.D) bson.D {
					if strings.Contains(c.String(), "at once") {
						p.Break()
					}
					return nil
				}}
			},
		},
		{
			name: "polls are answered by no primary at first", options: VerifyOptions{WaitTTL: time.Minute},
			server: refusing(upTo(2, polls), 189, "PrimarySteppedDown", "stepped down"),
		},
		{
			name: "polls are never answered", options: VerifyOptions{WaitTTL: time.Second},
			want: map[int]CheckStatus{checkTTL: CheckMissing}, detail: "not known",
			server: refusing(polls, 11600, "InterruptedAtShutdown", "shutting down"),
		},
	}
}

// TestVerifyKeepsFindings: whatever fails late, or takes too long, what was found is returned, and
// beside it the error that ended the checks.
func TestVerifyKeepsFindings(t *testing.T) {
	for _, tt := range lateFailures() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, proxy := impatient(t)
			proxy.Alter(tt.server(t, proxy))
			r, err := s.Verify(t.Context(), tt.options)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("the error is %v, want %q", err, tt.err)
			}
			var first string
			got := map[int]CheckStatus{}
			for _, c := range r.Checks {
				if c.Status == CheckOK || c.Status == CheckMissing && tt.want[c.Number] == "" { // the test server lacks some
					continue
				}
				if got[c.Number] = c.Status; first == "" {
					first = c.Detail
				}
				if (c.Follows == "") != (c.Status == CheckUnchecked) {
					t.Errorf("what follows: %+v", c)
				}
			}
			if want := tt.want; len(r.Checks) != len(relied) || len(got)+len(want) > 0 && !cmp.Equal(want, got) || !strings.Contains(first, tt.detail) {
				t.Errorf("%d checks; not ok %v, want %v; %q", len(r.Checks), got, want, first)
			}
		})
	}
}

// TestVerifySurvivesTheDriver: a reply that makes the driver panic fails a check, and ends neither
// the others nor the process.
func TestVerifySurvivesTheDriver(t *testing.T) {
	s, _, proxy := throughProxy(t)
	proxy.Alter(mongotest.Alteration{Reply: func(c, reply bson.D) bson.D {
		if c[0].Key != "update" {
			return reply
		}
		stray := fields(field("index", 99), field("_id", "x"))
		return append(without(reply, "upserted"), bson.E{Key: "upserted", Value: bson.A{stray}})
	}})
	for name, verify := range map[string]func() (Verification, error){
		"all":   func() (Verification, error) { return s.Verify(t.Context(), VerifyOptions{}) },
		"start": func() (Verification, error) { return s.VerifyCounters(t.Context()) },
	} {
		r, err := verify()
		if err != nil || len(r.Checks) == 0 || r.Checks[0].Status != CheckFailed || !strings.Contains(r.Checks[0].Detail, "panic") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestVerifyCountersKeepsFindings: that the scratch documents could not be removed does not hide
// what was found before.
func TestVerifyCountersKeepsFindings(t *testing.T) {
	s, _, proxy := throughProxy(t)
	altered := mongotest.SequenceIgnored
	altered.Answer = mongotest.Refuses("delete", 13, "Unauthorized", "not allowed").Answer
	proxy.Alter(altered)
	r, err := s.VerifyCounters(t.Context())
	if !hasCode(err, unauthorized) || !slices.Equal(numbers(r.Inexact()), []int{checkFallback}) {
		t.Errorf("%+v, %v", r.Inexact(), err)
	}
	proxy.Alter(unacknowledges(64))
	if r, err = s.VerifyCounters(t.Context()); err != nil || !slices.Equal(numbers(r.Inexact()), []int{checkWriteConcern}) {
		t.Errorf("%+v, %v", r.Inexact(), err)
	}
}
