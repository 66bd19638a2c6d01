package clientcfg_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// entry returns the event with that number that makes the changes.
func entry(number int64, changes ...clientcfg.Change) *clientcfg.Event {
	null := json.RawMessage("null")
	return &clientcfg.Event{Number: number, At: time.Unix(1_700_000_000, 0).UTC(), Action: "update", Before: null, After: null, Changes: changes}
}

// stored returns a change to a value as it may be stored.
func stored(target, value string) clientcfg.Change {
	return clientcfg.Change{Target: target, Before: json.RawMessage("null"), After: json.RawMessage(value)}
}

// did returns a function that checks that a change can be made.
func did(t *testing.T) func(c clientcfg.Change, err error) clientcfg.Change {
	t.Helper()
	return func(c clientcfg.Change, err error) clientcfg.Change {
		t.Helper()
		check.OK(t, err)
		return c
	}
}

// after applies changes to the file, each as its own entry.
func after(t *testing.T, changes ...clientcfg.Change) (*clientcfg.PolicySnapshot, error) {
	t.Helper()
	p := compile(t, clientcfg.PolicySet{})
	for i := range changes {
		next, err := p.Apply(entry(int64(i+1), changes[i]))
		if err != nil {
			return nil, err
		}
		p = next
	}
	return p, nil
}

func TestEveryChangeIsApplied(t *testing.T) {
	mode, canary, user := ratelimit.Off, 0.0, ""
	did := did(t)
	settings := clientcfg.Value{Policy: ratelimit.Policy{Mode: mode, User: onOutage(ratelimit.Memory)}, CanaryPercent: &canary, Note: "n"}
	policy := clientcfg.Value{Policy: ratelimit.Policy{Client: limits(2), Trusted: true}, Note: "x", Changed: 77}
	candidate := clientcfg.Value{Policy: ratelimit.Policy{User: onOutage(ratelimit.Deny)}, Since: time.Unix(5, 0).UTC()}
	e := entry(
		1, did(clientcfg.SetTarget(clientcfg.SettingsTarget, &settings)), did(clientcfg.SetTarget(clientcfg.PolicyTarget("a.b/c$d"), &policy)),
		did(clientcfg.SetTarget(clientcfg.CandidateTarget(clientcfg.GlobalCandidate), &candidate)), did(clientcfg.ResetCounters("a/b", &user)), did(clientcfg.ResetCounters("shop", nil)),
	)
	f := newPolicyStore(t)
	f.put(e.Changes...)
	read := f.trail()[0]
	e.ID = read.ID
	check.Equal(t, "after JSON", &read, e)
	p, err := compile(t, clientcfg.PolicySet{}).Apply(&read)
	check.OK(t, err)
	settings.Changed, policy.Changed, candidate.Changed = 1, 1, 1
	set := p.Set()
	check.Equal(t, "settings", set.Settings, settings)
	own, _ := set.Clients.Get("a.b/c$d")
	check.Equal(t, "policy", own, policy)
	tried, _ := set.Candidates.Get(clientcfg.GlobalCandidate)
	check.Equal(t, "candidate", tried, candidate)
	p, err = p.Apply(entry(2, did(clientcfg.SetTarget(clientcfg.PolicyTarget("a.b/c$d"), nil)), did(clientcfg.SetTarget(clientcfg.CandidateTarget(clientcfg.GlobalCandidate), nil)),
		did(clientcfg.SetTarget(clientcfg.SettingsTarget, &clientcfg.Value{}))))
	check.OK(t, err)
	set = p.Set()
	check.Equal(t, "settings", set.Settings, clientcfg.Value{Changed: 2})
	check.Equal(t, "policies and candidates", set.Clients.Len()+set.Candidates.Len(), 0)
}

// TestLimitsWithoutAllFields: fields that a stored limit leaves out have their defaults.
func TestLimitsWithoutAllFields(t *testing.T) {
	const old = `{"name":"per-minute","requests":5,"window":"1m0s","frames":1,"algorithm":"sliding","soft_ratio":0.8}`
	p, err := after(t, stored("settings", `{"user":[`+old+`]}`), stored("policies/shop", `{"client":[`+old+`]}`),
		stored("candidates/_default", `{"user":[`+old+`],"since":"2026-03-01T12:00:00Z"}`))
	check.OK(t, err)
	trial, tried := p.Trial("app")
	for where, got := range map[string][]ratelimit.Limit{
		"settings": p.For("app").User.All(), "policy": p.For("shop").Client.All(), "candidate": trial.Effective.User.All(),
	} {
		if diff := cmp.Diff(limits(5), got); diff != "" || !tried {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
	own, _ := p.Policy("shop")
	check.Equal(t, "version of the last change", own.Changed, 2)
}

func TestStoredValuesAreChecked(t *testing.T) {
	_, err := after(t, stored("policies/shop", `{"user":[{"name":"a"},{"name":"b","on_outage":"allow"}]}`))
	requireError(t, err, `clients.shop.user[1].on_outage: "allow" is not one of`)
	_, err = after(t, stored("settings", `{"note":"`+strings.Repeat("x", clientcfg.MaxTargetSize)+`"}`))
	requireError(t, err, "maximum of 12288")
	p, err := after(t, stored("settings", "null"), stored("policies/app", `{"user":null,"mode":null}`)) // as it may be written by hand
	check.OK(t, err)
	own, set := p.Policy("app")
	check.Equal(t, "an empty policy", own, clientcfg.Value{Changed: 2})
	check.Equal(t, "it is set", set, true)
}

// TestTheLongestPolicy: no valid policy is too long.
func TestTheLongestPolicy(t *testing.T) {
	longest := make([]ratelimit.Limit, ratelimit.MaxLimits)
	for i := range longest {
		longest[i] = ratelimit.Limit{
			Name: strings.Repeat(string(rune('a'+i)), ratelimit.MaxNameSize), Requests: ratelimit.MaxRequests, Window: ratelimit.MaxWindow - 7*time.Millisecond,
			Frames: 1, Algorithm: ratelimit.Sliding, SoftRatio: 0.12345678901234568, OnOutage: ratelimit.Deny,
			Strict: true, LeaseWait: ratelimit.MaxLeaseWait - 1,
		}
	}
	user, shared := slices.Clone(longest), [2][]ratelimit.Limit{}
	for i := range user {
		user[i].Grants = ratelimit.GrantCode | ratelimit.GrantRefresh | ratelimit.GrantPassword
	}
	for list := range shared {
		for i := range ratelimit.MaxShared {
			l := longest[i]
			l.Name, l.Strict, l.LeaseWait = strings.Repeat(string(rune('A'+list*ratelimit.MaxShared+i)), ratelimit.MaxNameSize), false, 0
			shared[list] = append(shared[list], l)
		}
	}
	policy := clientcfg.Value{
		Policy: ratelimit.Policy{User: user, Client: longest, Total: shared[0], Source: shared[1], Mode: ratelimit.Enforce, Criticality: ratelimit.SheddablePlus, HideHeaders: new(true)},
		Note:   strings.Repeat("<", clientcfg.MaxNoteLength),
	}
	_, err := after(t, did(t)(clientcfg.SetTarget(clientcfg.PolicyTarget("shop"), &policy)))
	check.OK(t, err)
}

func TestValuesThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct{ target, value, want string }{
		{"policies/shop", `{"burst":5}`, "burst: unknown field"},
		{"policies/shop", `{"Note":"x"}`, "Note: unknown field"},
		{"policies/shop", `{"note":"a","\u006eote":"a"}`, `duplicate name "note"`},
		{"policies/shop", `{} {}`, "unexpected text"},
		{"policies/shop", `{"max_waiting":` + strings.Repeat("9", 5000) + `}`, "max_waiting: must be a whole number, not 999"},
		{"settings", `{"mode":"\ud800"}`, "invalid surrogate pair"},
		{"candidates/a", `{"since":"yesterday"}`, "since"},
		{"policies/shop", `{"user":[5]}`, "user[0]: must be an object, not a plain value"},
		{"policies/a.b", `{"trusted":"x"}`, "policies/a.b: trusted"},
		{"policies/shop", `{"user":[{"name":"a","requests":1,"burst":1}]}`, "user[0].burst: unknown field"},
		{"clients/shop/counters", `{"usernames":[]}`, "usernames: unknown field"},
		{"clients/shop", `{}`, "clients/shop is not a target"},
		{"users/shop", `{}`, "users/shop is not a target"},
	} {
		_, err := after(t, stored(tt.target, tt.value))
		requireError(t, err, tt.want)
		if !errors.Is(err, clientcfg.ErrUnreadable) || len(err.Error()) > 500 {
			t.Errorf("%s: %d bytes of %v", tt.target, len(err.Error()), err)
		}
	}
}
