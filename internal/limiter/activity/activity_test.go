package activity_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world makes decisions with real counters and records them.
type world struct {
	t        *testing.T
	counters *counting.Counters
	policies *ratelimit.Compiled
	recorder *activity.Recorder
}

func newWorld(t *testing.T, s ratelimit.Settings) *world {
	t.Helper()
	p, err := ratelimit.Compile(s)
	check.OK(t, err)
	return &world{t, counting.NewCounters(0), p, activity.New(0, noon.Add(-time.Hour))}
}

func (w *world) ask(at time.Time, id, user string, n int) {
	kind := activity.Client
	if user != "" {
		kind = activity.User
	}
	for range n {
		d := w.counters.Take(at, ratelimit.Key{ClientID: id, Username: user}, w.policies.For(id), 1)
		w.recorder.Record(at, activity.Observation{ClientID: id, Username: user, Kind: kind, Decision: &d})
	}
}

func settings(mode ratelimit.Mode, requests int64) ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Mode = mode
	s.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
	s.Default.Client = s.Default.User
	return s
}

func TestReportCountsWhatWasDecided(t *testing.T) {
	s := settings(ratelimit.DryRun, 5)
	s.Clients = map[string]ratelimit.Policy{
		"hard": {Mode: ratelimit.Enforce}, "friend": {Trusted: true}, "free": {Mode: ratelimit.Off},
	}
	w := newWorld(t, s)
	w.ask(noon, "shop", "", 8)
	w.ask(noon, "hard", "ada", 6)
	w.ask(noon, "friend", "", 2)
	w.ask(noon, "free", "", 3)
	want := []activity.ClientReport{
		{ClientID: "shop", Counts: activity.Counts{Allowed: 5, WouldDeny: 3}},
		{ClientID: "hard", Counts: activity.Counts{Allowed: 5, Denied: 1}},
		{ClientID: "free", Counts: activity.Counts{Off: 3}},
		{ClientID: "friend", Counts: activity.Counts{Trusted: 2}},
	}
	got := w.recorder.Report(noon, 100)
	for i := range got.Clients {
		got.Clients[i].Kinds = nil
	}
	if diff := cmp.Diff(want, got.Clients); diff != "" || got.Total != 4 || got.Incomplete {
		t.Errorf("total %d, incomplete %v, clients (-want +got):\n%s", got.Total, got.Incomplete, diff)
	}
}

func TestReportForgetsAfterTenMinutes(t *testing.T) {
	w := newWorld(t, settings(ratelimit.Enforce, 100))
	w.ask(noon, "shop", "", 1)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {9*time.Minute + 29*time.Second, 1}, {10 * time.Minute, 0}, {24 * time.Hour, 0}, {-time.Minute, 0}} {
		r := w.recorder.Report(noon.Add(tt.after), 100)
		if len(r.Clients) != tt.want || r.Total != tt.want {
			t.Errorf("after %v: %d clients of %d, want %d", tt.after, len(r.Clients), r.Total, tt.want)
		}
		if age := noon.Add(tt.after).Sub(r.Since); age > activity.Window || age < activity.Window-30*time.Second {
			t.Errorf("after %v the report goes back %v", tt.after, age)
		}
	}
	w.ask(noon.Add(20*time.Minute), "shop", "", 2) // in the same slot of the ring
	if r := w.recorder.Report(noon.Add(20*time.Minute), 1); r.Clients[0].Allowed != 2 {
		t.Errorf("old counts came back: %+v", r.Clients[0])
	}
}

func TestReportGoesBackNoFurtherThanTheRecorder(t *testing.T) {
	r := activity.New(0, noon)
	if got := r.Report(noon.Add(time.Minute), 1).Since; !got.Equal(noon) {
		t.Errorf("after a minute the report goes back to %v", got)
	}
}

func TestReportCandidate(t *testing.T) {
	r := activity.New(0, noon.Add(-time.Hour))
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	record := func(tried ratelimit.Outcome, since time.Time) {
		r.Record(noon, activity.Observation{ClientID: "shop", Decision: &allowed, Tried: tried, TriedSince: since})
	}
	record(ratelimit.Passed, time.Time{})
	record(ratelimit.Allowed, noon)
	record(ratelimit.WouldDeny, noon)
	got := r.Report(noon, 1).Clients[0]
	if want := (activity.Counts{Allowed: 3, CandidateCounts: activity.CandidateCounts{Tried: 2, CandidateWouldDeny: 1}}); got.Counts != want || !got.TriedSince.Equal(noon) {
		t.Errorf("got %+v since %v, want %+v", got.Counts, got.TriedSince, want)
	}
	record(ratelimit.Allowed, noon.Add(time.Second)) // another candidate
	got = r.Report(noon, 1).Clients[0]
	if want := (activity.Counts{Allowed: 4, CandidateCounts: activity.CandidateCounts{Tried: 1}}); got.Counts != want {
		t.Errorf("of another candidate: got %+v, want %+v", got.Counts, want)
	}
}

func (w *world) kind(at time.Time) activity.KindReport {
	w.t.Helper()
	for _, c := range w.recorder.Report(at, 1).Clients {
		for _, k := range c.Kinds {
			return k
		}
	}
	w.t.Fatal("nothing is known")
	return activity.KindReport{}
}

// A peak above a lower limit of the same shape means that the lower limit would deny a request. A
// peak that is not above it means that it would not.
func TestPeakPredictsALowerLimit(t *testing.T) {
	for sent := 1; sent <= 12; sent++ {
		high := newWorld(t, settings(ratelimit.Enforce, 10))
		high.ask(noon, "shop", "ada", sent)
		high.ask(noon, "shop", "bob", 1) // another key, further from the limit
		peak := high.kind(noon).Limits[0].Count
		for lower := int64(1); lower <= 10; lower++ {
			low := newWorld(t, settings(ratelimit.Enforce, lower))
			low.ask(noon, "shop", "ada", sent)
			check.Equal(t, fmt.Sprintf("denied with %d sent, limit %d", sent, lower), low.kind(noon).Over > 0, peak > lower)
		}
	}
}

// change enforces other limits and sends one request.
func (w *world) change(at time.Time, mode ratelimit.Mode, limits ...ratelimit.Limit) activity.KindReport {
	w.t.Helper()
	s := settings(mode, 1)
	s.Default.Client = limits
	w.policies = newWorld(w.t, s).policies
	w.ask(at, "shop", "", 1)
	return w.kind(at)
}

func TestFiguresBelongToTheLimitsTheyWereCountedUnder(t *testing.T) {
	w := newWorld(t, settings(ratelimit.DryRun, 10))
	w.ask(noon, "shop", "", 15)
	k := w.kind(noon)
	if k.Over != 5 || k.Limits[0].Count != 11 || !k.Since.IsZero() {
		t.Errorf("at first: %+v", k)
	}
	later := noon.Add(time.Second)
	k = w.change(later, ratelimit.DryRun, ratelimit.NewLimit("per-minute", 40, time.Minute))
	if k.Over != 0 || !k.Since.Equal(later) {
		t.Errorf("under a higher limit: %+v", k)
	}
	if k.Limits[0].Count != 11 { // the ten requests counted before, and this one
		t.Errorf("the peak is %d", k.Limits[0].Count)
	}
	check.Equal(t, "what happened before", w.recorder.Report(later, 1).Clients[0].WouldDeny, 5)
	k = w.change(later, ratelimit.DryRun, ratelimit.NewLimit("per-minute", 5, time.Minute))
	if k.Over != 1 || k.Limits[0].Count != 11 {
		t.Errorf("under a lower limit: %+v", k)
	}
	k = w.change(later, ratelimit.DryRun, ratelimit.NewLimit("per-minute", 5, time.Minute), ratelimit.NewLimit("per-hour", 1000, time.Hour))
	if len(k.Limits) != 2 || k.Limits[0].Count != 11 || k.Under([]ratelimit.Limit{ratelimit.NewLimit("per-minute", 5, time.Minute)}) {
		t.Errorf("under two limits: %+v", k)
	}
	k = w.change(later, ratelimit.DryRun, ratelimit.NewLimit("per-second", 5, time.Second))
	if k.Limits[0].Count > 6 || !k.Under([]ratelimit.Limit{ratelimit.NewLimit("per-second", 5, time.Second)}) {
		t.Errorf("under another window: %+v", k)
	}
}

// TestFiguresOutliveAChangeOfOnOutage: while counts are shared, the limits deny the same requests.
func TestFiguresOutliveAChangeOfOnOutage(t *testing.T) {
	w := newWorld(t, settings(ratelimit.DryRun, 10))
	w.ask(noon, "shop", "", 15)
	l := ratelimit.NewLimit("per-minute", 10, time.Minute)
	l.OnOutage = ratelimit.Deny
	k := w.change(noon.Add(time.Second), ratelimit.DryRun, l)
	if k.Over != 6 || !k.Since.IsZero() || !k.Under([]ratelimit.Limit{l}) {
		t.Errorf("under the same limit, which denies in an outage: %+v", k)
	}
	l.Requests = 11
	if k.Under([]ratelimit.Limit{l}) {
		t.Error("it says that it was counted under another limit")
	}
	other := newWorld(t, settings(ratelimit.DryRun, 10)) // has not seen the change
	other.ask(noon, "shop", "", 12)
	merged := activity.Merge(w.recorder.Report(noon, 1), other.recorder.Report(noon, 1))
	check.Equal(t, "denials of both, 6 and 2", merged.Clients[0].Kinds[0].Over, 8)
}

// TestRecorderKeepsWhatIsUsed: an active client is recorded even if many names came before it and
// come between its requests.
func TestRecorderKeepsWhatIsUsed(t *testing.T) {
	w := newWorld(t, settings(ratelimit.Enforce, 100))
	w.recorder = activity.New(640, noon)
	for i := range 20_000 {
		w.ask(noon, "name"+strconv.Itoa(i), "", 1)
		if i > 5000 && i%100 == 0 {
			w.ask(noon, "late", "", 1)
		}
	}
	if r := w.recorder.Report(noon, 1); r.Clients[0].ClientID != "late" || r.Clients[0].Allowed < 90 {
		t.Errorf("%+v is the busiest", r.Clients[0])
	}
}

func TestRecorderIsBounded(t *testing.T) {
	const room = 3200
	w := newWorld(t, settings(ratelimit.Enforce, 100))
	w.recorder = activity.New(room, noon)
	for i := range 10_000 {
		w.ask(noon, "c"+strconv.Itoa(i), "", 1)
	}
	r := w.recorder.Report(noon, 10)
	if r.Total > room || r.Total < room/2 || !r.Incomplete || len(r.Clients) != 10 {
		t.Errorf("%d clients are kept, %d listed, incomplete: %v", r.Total, len(r.Clients), r.Incomplete)
	}
	later := noon.Add(11 * time.Minute)
	for i := range 300 {
		w.ask(later, "late"+strconv.Itoa(i), "", 1)
	}
	if r = w.recorder.Report(later, 1000); r.Total != 300 || r.Incomplete {
		t.Errorf("after the old ones are forgotten: %d of 300, incomplete: %v", r.Total, r.Incomplete)
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	w := newWorld(t, settings(ratelimit.Enforce, 1000))
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			for j := range 200 {
				w.ask(noon, "c"+strconv.Itoa(j%3), "u"+strconv.Itoa(i), 1)
				if j%50 == 0 {
					w.recorder.Report(noon, 2)
				}
			}
		})
	}
	workers.Wait()
	var total uint64
	for _, c := range w.recorder.Report(noon, 10).Clients {
		total += c.Total()
	}
	if total != 1600 {
		t.Errorf("%d requests were counted of 1600", total)
	}
}

func TestMergeAddsUp(t *testing.T) {
	a, b := newWorld(t, settings(ratelimit.DryRun, 2)), newWorld(t, settings(ratelimit.DryRun, 2))
	a.ask(noon, "shop", "", 3)
	a.ask(noon, "app", "", 1)
	b.ask(noon.Add(time.Minute), "shop", "ada", 1)
	b.ask(noon.Add(time.Minute), "shop", "", 4)
	b.ask(noon.Add(time.Minute), "web", "", 1)
	merged := activity.Merge(a.recorder.Report(noon, 10), throughJSON(t, b.recorder.Report(noon.Add(time.Minute), 10)))
	if merged.Total != 3 || merged.Incomplete || !merged.Since.Equal(a.recorder.Report(noon, 1).Since) {
		t.Errorf("total %d, incomplete %v, since %v", merged.Total, merged.Incomplete, merged.Since)
	}
	first := merged.Clients[0]
	own, _ := first.Kind(activity.Client)
	users, _ := first.Kind(activity.User)
	if first.ClientID != "shop" || first.Allowed != 5 || own.Over != 3 || own.Limits[0].Count != 3 || users.Limits[0].Count != 1 {
		t.Errorf("shop is %+v", first)
	}
	if cut := activity.Merge(a.recorder.Report(noon, 1)); !cut.Incomplete || cut.Total != 2 {
		t.Errorf("a report that was cut off: %+v", cut)
	}
	if none := activity.Merge(); none.Total != 0 || none.Incomplete {
		t.Errorf("nothing merged is %+v", none)
	}
}

// One process had a request since the limits were changed, the other did not.
func TestMergeBelievesTheLaterLimits(t *testing.T) {
	a, b := newWorld(t, settings(ratelimit.DryRun, 2)), newWorld(t, settings(ratelimit.DryRun, 2))
	a.ask(noon, "shop", "", 5)
	b.ask(noon, "shop", "", 5)
	higher := ratelimit.NewLimit("per-minute", 50, time.Minute)
	b.change(noon.Add(time.Second), ratelimit.DryRun, higher)
	ra, rb := a.recorder.Report(noon, 1), b.recorder.Report(noon, 1)
	for _, m := range []activity.Report{activity.Merge(ra, rb), activity.Merge(rb, ra)} {
		k, _ := m.Clients[0].Kind(activity.Client)
		if !k.Under([]ratelimit.Limit{higher}) || k.Over != 0 || m.Clients[0].WouldDeny != 6 {
			t.Errorf("merged: %+v", m.Clients[0])
		}
	}
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	tried := func(since time.Time, times int) activity.Report {
		r := activity.New(0, noon)
		for range times {
			r.Record(noon, activity.Observation{ClientID: "shop", Decision: &allowed, Tried: ratelimit.WouldDeny, TriedSince: since})
		}
		return r.Report(noon, 1)
	}
	later, earlier := tried(noon.Add(time.Second), 2), tried(noon, 7)
	for _, m := range []activity.Report{activity.Merge(later, earlier), activity.Merge(earlier, later)} {
		if c := m.Clients[0]; c.Tried != 2 || c.CandidateWouldDeny != 2 || c.Allowed != 9 {
			t.Errorf("merged: %+v", c)
		}
	}
}

func throughJSON(t *testing.T, r activity.Report) (out activity.Report) {
	t.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	check.OK(t, err)
	check.Equal(t, "after JSON", out, r)
	return out
}

func ExampleRecorder() {
	policies, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.DryRun, Default: ratelimit.Policy{
		User:   []ratelimit.Limit{ratelimit.NewLimit("per-minute", 10, time.Minute)},
		Client: []ratelimit.Limit{ratelimit.NewLimit("per-minute", 10, time.Minute)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	counters, recorder := counting.NewCounters(0), activity.New(activity.DefaultMaxClients, noon)
	for range 12 {
		d := counters.Take(noon, ratelimit.Key{ClientID: "shop"}, policies.For("shop"), 1)
		recorder.Record(noon, activity.Observation{ClientID: "shop", Kind: activity.Client, Decision: &d})
	}
	for _, c := range recorder.Report(noon, activity.MaxReported).Clients {
		fmt.Println(c.ClientID, "allowed:", c.Allowed, "would have been denied:", c.WouldDeny)
	}
	// Output: shop allowed: 10 would have been denied: 2
}

// TestOverridesDoNotStartTheFiguresOver: requests under an override count as requests of the
// client, and their denials as denials that enforcement would cause. Peaks ignore them.
func TestOverridesDoNotStartTheFiguresOver(t *testing.T) {
	s := settings(ratelimit.DryRun, 10)
	w := newWorld(t, s)
	e := w.policies.Edit()
	check.OK(t, e.SetOverride("shop", "batch", []ratelimit.Limit{ratelimit.NewLimit("per-minute", 20, time.Minute)}))
	w.policies = e.Compiled()
	for range 3 { // alternating
		w.ask(noon, "shop", "ada", 2)
		w.ask(noon, "shop", "batch", 7)
	}
	k := w.kind(noon)
	if !k.Since.IsZero() || !k.Under(s.Default.User) || k.Limits[0].Count != 6 || k.Over != 1 {
		t.Errorf("of the others is known %+v; want a peak of 6 since ever, and 1 over", k)
	}
	want := activity.Counts{Allowed: 26, WouldDeny: 1}
	check.Equal(t, "counted", w.recorder.Report(noon, 1).Clients[0].Counts, want)
}

// Requests that were refused before the limiter decided are counted separately and merged over all
// instances. A client with no other requests is reported.
func TestShedRequests(t *testing.T) {
	a, b := activity.New(0, noon.Add(-time.Hour)), activity.New(0, noon.Add(-time.Hour))
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	a.Record(noon, activity.Observation{ClientID: "shop", Kind: activity.Client, Decision: &allowed})
	for range 3 {
		a.Shed(noon, "shop", false)
	}
	a.Shed(noon, "batch", true)
	a.Shed(noon, "", false) // without a client
	b.Shed(noon.Add(time.Minute), "shop", false)
	b.Shed(noon.Add(time.Minute), "shop", true)

	at := noon.Add(time.Minute)
	merged := activity.Merge(a.Report(at, activity.MaxReported), b.Report(at, activity.MaxReported))
	check.Equal(t, "clients", shedOf(merged), []string{"shop 1 4 1", "batch 0 0 1"})

	later := noon.Add(activity.Window + time.Minute)
	check.Equal(t, "after the window", shedOf(a.Report(later, activity.MaxReported)), []string(nil))
}

// shedOf returns the clients of a report, each with its requests that were decided, shed, and would
// have been shed.
func shedOf(r activity.Report) (out []string) {
	for _, c := range r.Clients {
		out = append(out, fmt.Sprint(c.ClientID, " ", c.Total(), " ", c.Shed, " ", c.WouldShed))
	}
	return out
}

// A report without room for all clients has the clients with the most shed requests.
func TestReportKeepsTheShed(t *testing.T) {
	r := activity.New(0, noon.Add(-time.Hour))
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	for i := range 10 {
		for range 100 {
			r.Record(noon, activity.Observation{ClientID: fmt.Sprint("busy-", i), Kind: activity.Client, Decision: &allowed})
		}
	}
	r.Shed(noon, "b", false)
	r.Shed(noon, "a", true)
	check.Equal(t, "kept", shedOf(r.Report(noon, 2)), []string{"a 0 0 1", "b 0 1 0"})
}

// More clients than there is room for take no more memory, and the report is marked as incomplete.
func TestShedIsBounded(t *testing.T) {
	r := activity.New(64, noon.Add(-time.Hour))
	for i := range 10_000 {
		r.Shed(noon, fmt.Sprint("client-", i), false)
	}
	report := r.Report(noon, 1000)
	if report.Total > 64 || !report.Incomplete {
		t.Errorf("%d clients are known, incomplete: %v", report.Total, report.Incomplete)
	}
}

// Shed is called for each of thousands of requests a second that are refused to save time.
func TestShedDoesNotAllocate(t *testing.T) {
	r := activity.New(0, noon)
	shed := func() { r.Shed(noon, "shop", false) }
	shed()
	check.Equal(t, "allocations", testing.AllocsPerRun(100, shed), 0.0)
}
