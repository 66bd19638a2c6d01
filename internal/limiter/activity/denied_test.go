package activity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

func TestDenialsPerUser(t *testing.T) {
	w := newWorld(t, settings(ratelimit.Enforce, 5))
	w.ask(noon, "shop", "ada", 8)
	w.ask(noon, "shop", "bob", 12)
	w.ask(noon, "shop", "eve", 5) // all allowed
	w.ask(noon, "shop", "", 6)    // the client itself
	w.ask(noon, "report", "ada", 6)
	r := w.recorder.Report(noon.Add(time.Minute), 100)
	users, others := r.DeniedOf("shop")
	want := []activity.UserReport{
		{ClientID: "shop", Username: "bob", Denials: activity.Denials{Denied: 7}},
		{ClientID: "shop", Username: "ada", Denials: activity.Denials{Denied: 3}},
		{ClientID: "shop", Username: "", Denials: activity.Denials{Denied: 1}},
	}
	if diff := cmp.Diff(want, users); diff != "" || others.Total() != 0 || len(r.Denied) != 4 {
		t.Errorf("%d denied users, others %+v (-want +got):\n%s", len(r.Denied), others, diff)
	}
	if r = w.recorder.Report(noon.Add(activity.Window), 100); len(r.Denied) != 0 {
		t.Errorf("after the window there are %v", r.Denied)
	}
}

// The most denied users are found among very many users with one denial, in bounded memory.
func TestMostDeniedAreFound(t *testing.T) {
	w := newWorld(t, settings(ratelimit.DryRun, 1))
	d := w.counters.Take(noon, ratelimit.Key{ClientID: "x"}, w.policies.For("x"), 2)
	for i := range 10_000 {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		w.recorder.Record(at, activity.Observation{ClientID: "shop", Username: fmt.Sprint("user", i), Kind: activity.User, Decision: &d})
		if i%20 == 0 {
			w.recorder.Record(at, activity.Observation{ClientID: "shop", Username: "ada", Kind: activity.User, Decision: &d})
		}
	}
	r := w.recorder.Report(noon.Add(10*time.Second), 100)
	users, others := r.DeniedOf("shop")
	if len(users) != 20 || users[0].Username != "ada" || users[0].WouldDeny < 250 || users[0].WouldDeny > 500 {
		t.Fatalf("%d users, the first of them %+v", len(users), users[0])
	}
	sum := others
	for _, u := range users {
		sum = sum.Plus(u.Denials)
	}
	if sum != (activity.Denials{WouldDeny: 10_500}) {
		t.Errorf("users and others have %+v together", sum)
	}
}

// Old denials leave room for new ones.
func TestDeniedUsersAreForgotten(t *testing.T) {
	w := newWorld(t, settings(ratelimit.DryRun, 1))
	d := w.counters.Take(noon, ratelimit.Key{ClientID: "x"}, w.policies.For("x"), 2)
	record := func(at time.Time, client string) {
		for i := range 50 {
			w.recorder.Record(at, activity.Observation{ClientID: client, Username: fmt.Sprint(i), Kind: activity.User, Decision: &d})
		}
	}
	for i := range 1000 { // more users than are followed
		record(noon, fmt.Sprint("client", i))
	}
	later := noon.Add(activity.Window - time.Minute)
	record(later, "late")
	r := w.recorder.Report(later, 2000)
	if users, others := r.DeniedOf("late"); len(users) != 0 || others.WouldDeny != 50 {
		t.Errorf("%d users of a client for which there was no room, others %+v", len(users), others)
	}
	record(noon.Add(activity.Window+time.Minute), "late")
	r = w.recorder.Report(noon.Add(activity.Window+time.Minute), 2000)
	if users, _ := r.DeniedOf("late"); len(users) != 20 {
		t.Errorf("%d users after the others were forgotten, want 20", len(users))
	}
}

func TestDenialsOfAnotherCandidateAreLeftOut(t *testing.T) {
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	of := func(since time.Time) activity.Report {
		r := activity.New(0, noon)
		r.Record(noon, activity.Observation{
			ClientID: "shop", Username: "ada", Kind: activity.User, Decision: &allowed, Tried: ratelimit.WouldDeny, TriedSince: since,
		})
		return r.Report(noon, 10)
	}
	first, second := of(noon), of(noon.Add(time.Second))
	merged := activity.Merge(first, second, second)
	users, others := merged.DeniedOf("shop")
	want := []activity.UserReport{{ClientID: "shop", Username: "ada", Denials: activity.Denials{CandidateWouldDeny: 2}}}
	if diff := cmp.Diff(want, users); diff != "" || others.Total() != 0 {
		t.Errorf("others %+v (-want +got):\n%s", others, diff)
	}
}

// A new candidate starts without denials, including those of users.
func TestDenialsOfAnEarlierCandidateAreForgotten(t *testing.T) {
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	r := activity.New(0, noon)
	o := activity.Observation{ClientID: "shop", Username: "ada", Kind: activity.User, Decision: &allowed, Tried: ratelimit.WouldDeny, TriedSince: noon}
	r.Record(noon, o)
	o.TriedSince, o.Tried = noon.Add(time.Second), ratelimit.Allowed
	r.Record(noon.Add(time.Second), o)
	if got := r.Report(noon.Add(time.Second), 10); len(got.Denied) != 0 {
		t.Errorf("%+v", got.Denied)
	}
}
