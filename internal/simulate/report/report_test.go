package report_test

import (
	"flag"
	"math"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
)

var show = flag.String("show", "", "write pictures of the page to this directory, to look at")

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// hostile is what a client may be called in a log.
const hostile = "</script><img src=x onerror=\"document.title='hit'\">'\"&{{.}}\u202e\x1b[31m\n<b>"

// sample is the result of two days of traffic with all that a result can have.
func sample() *simulate.Result {
	over := func(n int, f func(i int) float64) (counts []uint64) {
		for i := range n {
			counts = append(counts, uint64(max(0, f(i))))
		}
		return counts
	}
	const n = 2 * 24 * 60 / 5
	requests := over(n, func(i int) float64 {
		return 900 + 700*math.Sin(float64(i)/46-1.5) + 60*math.Sin(float64(i))
	})
	refused := over(n, func(i int) float64 { return 300*math.Sin(float64(i)/46-1.5) - 120 + 50*math.Sin(float64(i)/2) })
	r := &simulate.Result{
		From: monday.Add(3 * time.Second), To: monday.Add(48*time.Hour - 7*time.Second),
		Total: simulate.Counts{
			Requests: 523_451, Admitted: 498_311, Denied: 21_933, Delayed: 2000, Reused: 1107, Banned: 100, Failed: 812, Wasted: 61_001,
		},
		Reach:       simulate.Reach{ClientCount: 342, ClientsHit: 12, UsersHit: 12_345, UsersEstimated: true},
		MoreClients: 280,
		Series: simulate.Series{
			Start: monday, Step: 300, Requests: requests, Refused: refused,
			Delayed: over(n, func(i int) float64 { return 30 * math.Sin(float64(i)/46-1.5) }),
		},
		Notes: []string{"The log does not say the user of 3,211 requests: they count for their client alone"},
		Lines: simulate.Lines{
			Format: "keycloak", Read: 524_263, Unread: 41, Skipped: 77_120,
			Causes: []simulate.Cause{
				{Cause: "time: \"yesterday\" is not a time", Lines: 40, First: "events.log.gz:1201"},
				{Cause: "the line is longer than 1 MiB: " + hostile, Lines: 1, First: "events.log.gz:77121"},
			},
		},
		Policy: "rate_limit:\n  default:\n    user: [ { name: per-minute, requests: 100, window: 60s } ]\n  clients:\n    \"" + hostile + "\": { trusted: true }\n",
	}
	for i, id := range []string{"batch-job", hostile, "integrator", "mobile-app", "partner-with-a-rather-long-client-id-0123456789abcdef", "shop", "web", "quiet"} {
		part := uint64(8 - i)
		c := simulate.Client{
			ClientID: id, UsersHit: 30 * part, UsersEstimated: i == 0, LongestBlocked: simulate.Seconds(217.4 * float64(part)), LongestWait: simulate.Seconds(57.001 / float64(i+1)),
			Counts:       simulate.Counts{Requests: 9000 * part, Admitted: 8000 * part, Denied: 700 * part, Banned: part, Delayed: 5 * part, Reused: part, Failed: 2 * part},
			RefusedShare: 0.078 * float64(part) / 8, WastedShare: 0.12,
			WorstMinute: &simulate.Minute{At: monday.Add(9*time.Hour + time.Duration(i)*time.Minute), Requests: 900 * part, Refused: 300 * part},
			Series: &simulate.Series{Start: monday.Add(time.Hour), Step: 900, Requests: make([]uint64, 180), Refused: over(180, func(j int) float64 {
				return 40 * float64(part) * math.Sin(float64(j)/15-float64(i)/3)
			})},
		}
		if id == "quiet" {
			c.Counts, c.RefusedShare, c.WorstMinute, c.UsersHit, c.LongestBlocked, c.LongestWait = simulate.Counts{Requests: 12, Admitted: 12}, 0, nil, 0, 0, 0
		}
		r.Clients = append(r.Clients, c)
	}
	for i, limit := range []string{"50/60s", "100/60s", "200/60s", "400/60s", "120/60s"} {
		refused := []uint64{61_001, 22_033, 7100, 312, 18_000}[i]
		r.WhatIf = append(r.WhatIf, simulate.WhatIf{
			Limit: limit, Found: i == 4, RefusedShare: float64(refused) / 523_451, Counts: simulate.Counts{Requests: 523_451, Denied: refused},
			Reach: simulate.Reach{ClientCount: 342, ClientsHit: []int{40, 12, 5, 1, 10}[i], UsersHit: refused / 9},
		})
	}
	r.Targets = []simulate.Target{target()}
	return r
}

func target() simulate.Target {
	t := simulate.Target{
		Share: 0.97, Of: simulate.OfClients, Limit: "120/60s", Requests: 120, Found: ratelimit.NewLimit("found", 120, time.Minute),
		Count: 342, Untouched: 332, MoreOutstanding: 7, Min: 110, Max: 120,
		Outstanding: []simulate.Outstanding{
			{ClientID: "batch-job", Needs: 2411, Requests: 72_000},
			{ClientID: hostile, Needs: 800, Requests: 63_000},
			{ClientID: "integrator", Needs: 131, Requests: 54_000},
		},
		Days: []simulate.Day{{Without: "2026-05-04", Requests: 110}, {Without: "2026-05-05", Requests: 120}},
	}
	for i, limit := range []int64{1, 2, 3, 5, 8, 14, 22, 31, 40, 52, 80, 99, 120, 131, 800, 2411} {
		t.Curve = append(t.Curve, simulate.Point{Requests: limit, Untouched: []uint64{10, 40, 81, 120, 160, 200, 240, 270, 290, 302, 320, 329, 332, 333, 341, 342}[i]})
	}
	return t
}

func written(t *testing.T, r *simulate.Result) string {
	t.Helper()
	var out strings.Builder
	check.OK(t, report.Write(&out, r))
	return out.String()
}
