package activity_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// TestReportKeepsTheWasteful: the client with the most wasted tokens is reported, even if many
// others have more denials.
func TestReportKeepsTheWasteful(t *testing.T) {
	r := activity.New(0, noon.Add(-time.Hour))
	denied, allowed := ratelimit.Decision{Outcome: ratelimit.Denied}, ratelimit.Decision{Outcome: ratelimit.Allowed}
	record := func(id string, d *ratelimit.Decision, wasted int) {
		r.Record(noon, activity.Observation{ClientID: id, Kind: activity.Client, Decision: d})
		for range wasted {
			r.RecordIssued(noon, activity.Issuance{ClientID: id, Wasted: true})
		}
	}
	for i := range activity.MaxReported {
		record(fmt.Sprintf("denied-%03d", i), &denied, 0)
	}
	for i := range 60 {
		record(fmt.Sprintf("wasteful-%02d", i), &allowed, i)
	}
	report := r.Report(noon, activity.MaxReported)
	var ids []string
	for _, c := range report.Clients {
		ids = append(ids, c.ClientID)
	}
	var want []string
	for i := range activity.MaxReported - 50 {
		want = append(want, fmt.Sprintf("denied-%03d", i))
	}
	for i := range 50 {
		want = append(want, fmt.Sprintf("wasteful-%02d", 10+i))
	}
	if !slices.Equal(ids, want) || report.Total != activity.MaxReported+60 {
		t.Errorf("%d clients of %d: %q, want %q", len(ids), report.Total, ids, want)
	}
}

// TestReportCountsReuseAndWaste: requests over the limit that were not denied, and issued tokens.
func TestReportCountsReuseAndWaste(t *testing.T) {
	r := activity.New(0, noon.Add(-time.Hour))
	limits, err := ratelimit.Enforced(ratelimit.DefaultLimit(), ratelimit.NewLimit("few", 1, time.Minute))
	check.OK(t, err)
	c := counting.NewCounters(0)
	for _, outcome := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Denied, ratelimit.Reused, ratelimit.Reused, ratelimit.WouldReuse} {
		d := c.Take(noon, ratelimit.Key{ClientID: "shop"}, limits, 1)
		d.Outcome = outcome
		tried := map[ratelimit.Outcome]ratelimit.Outcome{ratelimit.Denied: ratelimit.WouldReuse, ratelimit.Allowed: ratelimit.WouldBan, ratelimit.WouldReuse: ratelimit.WouldDelay}
		r.Record(noon, activity.Observation{
			ClientID: "shop", Kind: activity.Client, Decision: &d, Tried: cmp.Or(tried[outcome], ratelimit.WouldDeny), TriedSince: noon,
		})
	}
	r.RecordIssued(noon, activity.Issuance{ClientID: "shop"})
	r.RecordIssued(noon, activity.Issuance{ClientID: "shop", Wasted: true})
	r.RecordIssued(noon, activity.Issuance{ClientID: "shop", Wasted: true, Refresh: true})
	r.RecordIssued(noon, activity.Issuance{ClientID: "shop", Refresh: true})
	want := activity.Counts{
		Allowed: 1, Denied: 1, Reused: 2, WouldReuse: 1, Issued: 4, Wasted: 2, EarlyRefreshes: 1,
		CandidateCounts: activity.CandidateCounts{Tried: 5, CandidateWouldDeny: 2, CandidateWouldReuse: 1, CandidateWouldDelay: 1, CandidateWouldBan: 1},
	}
	once := r.Report(noon, 1)
	got := once.Clients[0]
	if got.Counts != want || got.Total() != 5 {
		t.Errorf("got %+v, in total %d, want %+v", got.Counts, got.Total(), want)
	}
	kind, _ := got.Kind(activity.Client)
	if kind.Over != 4 || kind.Reused != 3 {
		t.Errorf("%d over the limit, %d of them reused, want 4 and 3", kind.Over, kind.Reused)
	}
	twice := activity.Merge(once, once).Clients[0]
	if kind, _ = twice.Kind(activity.Client); twice.Counts != want.Plus(want) || kind.Reused != 6 {
		t.Errorf("of two processes: %+v, %d reused", twice.Counts, kind.Reused)
	}
	allowed := ratelimit.Decision{Outcome: ratelimit.Allowed}
	r.Record(noon, activity.Observation{ClientID: "shop", Decision: &allowed, Tried: ratelimit.Allowed, TriedSince: noon.Add(time.Second)})
	check.Equal(t, "counts of a new candidate", r.Report(noon, 1).Clients[0].CandidateCounts, activity.CandidateCounts{Tried: 1})
}
