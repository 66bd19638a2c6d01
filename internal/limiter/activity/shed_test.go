package activity_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

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
