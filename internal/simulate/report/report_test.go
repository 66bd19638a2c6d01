package report_test

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
	"oauth-server/internal/simulate/traffic"
)

var show = flag.String("show", "", "write pictures of the page to this directory, to look at")

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// hostile is a possible client ID in a log.
const hostile = "</script><img src=x onerror=\"document.title='hit'\">'\"&{{.}}\u202e\x1b[31m\n<b>"

// sample returns the result of two days of traffic with all that a result can have.
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
		Lines: traffic.Lines{
			Files: []traffic.File{{Name: "events.log.1.gz", Format: "keycloak"}, {Name: "events.log" + hostile, Format: "keycloak"}},
			Read:  524_263, Reordered: 17, Unread: 41, Skipped: 77_120,
			Causes: []traffic.Cause{
				{Field: "time", Problem: "\"yesterday\" is not a time", Lines: 40, First: "events.log.gz:1201"},
				{Field: "line", Problem: "the line is longer than 1 MiB: " + hostile, Lines: 1, First: "events.log.gz:77121"},
			},
		},
		Under: "the limits of conf.yaml\u202e", Found: "settings: { note: found }\n",
		Policies: []simulate.PolicyFile{{Name: "conf.yaml" + hostile, Text: "rate_limit:\n  default:\n    user: [ { name: per-minute, requests: 100, window: 60s } ]\n  clients:\n    \"" + hostile + "\": { trusted: true }\n"}},
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

// words returns the texts of the page, without elements, styles and scripts.
func words(t *testing.T, page string) string {
	t.Helper()
	var all []string
	skip := ""
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			check.Equal(t, "error of the page", z.Err(), io.EOF)
			return strings.Join(all, " ")
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "style" || string(name) == "script" || string(name) == "svg" {
				skip = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		case html.TextToken:
			if text := strings.TrimSpace(string(z.Text())); skip == "" && text != "" {
				all = append(all, html.UnescapeString(text))
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

func TestWhatThePageSays(t *testing.T) {
	t.Parallel()
	shown := words(t, written(t, sample()))
	for _, want := range []string{
		"Of 523,451 requests of 342 clients, from 2026-05-04T00:00:03Z to 2026-05-05T23:59:53Z, 22,033 are refused, of 12 clients and ~12,345 users under the limits of conf.yaml\\u202e.",
		"Requests 523,451", "Refused 22,033 4.21 %", "Clients hit 12 of 342, 3.51 %", "Users hit ~12,345", "Banned 100", "Delayed 2,000",
		"Reused 1,107", "Failed 812", "Waste 12.2 %",
		"The log does not say the user of 3,211 requests: they count for their client alone.",
		"Lowest limit that leaves 97 % of clients untouched: 120/60s",
		"It leaves 332 of 342 clients untouched, 97.1 %. If one of the 2 days is left out, the answer is between 110 and 120.",
		"Without Limit 2026-05-04 110 2026-05-05 120", "Needs Requests batch-job 2,411 72,000", "7 clients are left out here.",
		"100/60s 12 of 342 2,448 22,033 4.21 %", "120/60s (found)",
		"batch-job 72,000 64,000 5,600 40 8 8 16 7.8 % ~240 2026-05-04T09:00Z: 2,400 of 7,200 28m59s 57s 12 %",
		"quiet 12 12 0 0 0 0 0 0 % 0 - - - 12 %", "334 clients are left out here.",
		"Token requests 524,263 87.2 % Skipped 77,120 not token requests Unread 41 0.007 % Reordered 17",
		"events.log.1.gz keycloak", `"yesterday" is not a time time 40 events.log.gz:1201`,
		"Limits in this simulation conf.yaml", "Limits found settings: { note: found }",
		"user: [ { name: per-minute, requests: 100, window: 60s } ]",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
}

// TestNothingHappened: the page leaves out columns, figures, sections and charts for events that
// did not happen.
func TestNothingHappened(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		result simulate.Result
		says   string
	}{
		"no requests": {simulate.Result{}, "No request would be counted by a limit."},
		"none refused": {simulate.Result{
			From: monday, To: monday.Add(time.Minute), Total: simulate.Counts{Requests: 1, Admitted: 1}, Reach: simulate.Reach{ClientCount: 1},
			Series:  simulate.Series{Start: monday, Step: 1, Requests: []uint64{1}, Refused: []uint64{0}},
			Clients: []simulate.Client{{ClientID: "shop", Counts: simulate.Counts{Requests: 1, Admitted: 1}}},
		}, "Of 1 request of 1 client, from 2026-05-04T00:00:00Z to 2026-05-04T00:01:00Z, none is refused under"},
		"another answer without any day": {
			simulate.Result{Targets: []simulate.Target{{
				Share: 0.9912345, Of: simulate.OfRequests, Limit: "45/60s", Requests: 45, Min: 44, Max: 44, Days: []simulate.Day{{Requests: 44}, {Requests: 44}},
			}}},
			"Lowest limit that leaves 99.12345 % of requests untouched: 45/60s It leaves 0 of 0 requests untouched, 0 %. Whichever of the 2 days is left out, the answer is 44.",
		},
		"an empty curve, one day": {
			simulate.Result{Targets: []simulate.Target{{Share: 1, Of: simulate.OfRequests, Limit: "1/60s", Requests: 1}}},
			"replay more days",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := words(t, written(t, &tt.result))
			if !strings.Contains(shown, tt.says) {
				t.Errorf("the page does not say %q:\n%s", tt.says, shown)
			}
			for _, never := range []string{"Banned", "Delayed", "Reused", "Failed", "Limits compared", "by cause", "by client", "NaN", "left out here"} {
				if strings.Contains(shown, never) {
					t.Errorf("the page says %q:\n%s", never, shown)
				}
			}
		})
	}
}

// TestHostileNames: text from a log stays text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	page := written(t, sample())
	elements := map[string]int{}
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		elements[token.Data]++
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && a.Val != "data:," {
				t.Errorf("there is a %s with %s=%q", token.Data, a.Key, a.Val)
			}
		}
	}
	for name, n := range map[string]int{"script": 1, "style": 1, "img": 0, "b": 0, "meta": 4, "link": 1, "iframe": 0} {
		check.Equal(t, "elements "+name, elements[name], n)
	}
	for _, raw := range []string{"\u202e", "\x1b", "{{", "ZgotmplZ"} {
		if strings.Contains(strings.ReplaceAll(page, "&amp;{{.}}", ""), raw) {
			t.Errorf("%q is in the page", raw)
		}
	}
}

// TestBounds: neither many clients nor a long time make the page too large for a browser.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := sample()
	r.ClientCount = 10_000
	for i := range 10_000 {
		r.Clients = append(r.Clients, simulate.Client{ClientID: fmt.Sprintf("client-%d", i), Series: r.Clients[0].Series, Counts: r.Clients[0].Counts})
	}
	r.Series.Requests = make([]uint64, simulate.MaxBuckets)
	for i := range r.Series.Requests {
		r.Series.Requests[i] = 7
	}
	r.Series.Refused, r.Series.Delayed = r.Series.Requests, nil
	page := written(t, r)
	if n := strings.Count(page, `<tr`); n > 1000+2*288+100 {
		t.Errorf("the page has %d rows", n)
	}
	if len(page) > 3<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	// 1,440 parts of 5 minutes are 288 of 25, each with five times as many requests.
	if shown := words(t, page); !strings.Contains(shown, "4 May 00:00 35 35 4 May 00:25 35 35") || !strings.Contains(shown, "9,000 clients are left out here.") {
		t.Error("the parts or the clients that are left out are wrong")
	}
}
