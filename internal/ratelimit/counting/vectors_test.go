package counting

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestPublishedExamples checks examples published by others, from testdata/sliding.json.
func TestPublishedExamples(t *testing.T) {
	raw, err := os.ReadFile("testdata/sliding.json")
	check.OK(t, err)
	var file struct {
		Cases []struct {
			Name      string              `json:"name"`
			Algorithm ratelimit.Algorithm `json:"algorithm"`
			Window    int64               `json:"window"`
			Frames    int                 `json:"frames_per_window"`
			Limit     int64               `json:"limit"`
			Counts    map[string]int64    `json:"counts"`
			At        int64               `json:"at"`
			Estimate  float64             `json:"estimate"`
			Admits    *int64              `json:"admits"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("sliding.json has %d cases: %v", len(file.Cases), err)
	}

	for _, tc := range file.Cases {
		t.Run(tc.Name, func(t *testing.T) {
			limit := ratelimit.NewLimit("vector", max(tc.Limit, 1), time.Duration(tc.Window)*time.Second)
			if tc.Limit == 0 {
				limit.Requests = 1000
			}
			limit.Algorithm, limit.Frames = tc.Algorithm, tc.Frames
			check.OK(t, limit.Validate())

			now := time.Unix(tc.At, 0)
			c, k, eff := single(limit)
			doc := &ratelimit.Document{Version: 1, Etag: 1}
			for name, n := range tc.Counts {
				start, err := strconv.ParseInt(name, 10, 64)
				check.OK(t, err)
				doc.Frames = append(doc.Frames, ratelimit.FrameCount{Name: start, Count: n})
			}
			hold(c, k, eff.User, now)
			c.read(k, now, doc)

			if got := c.Usage(now, k)[0].Estimate; math.Abs(got-tc.Estimate) > 1e-12 {
				t.Fatalf("estimate = %v, want %v", got, tc.Estimate)
			}
			if tc.Admits != nil {
				mustAdmit(t, *tc.Admits, c, now, k, eff)
			}
		})
	}
}

// single returns counters, a key, and its single limit list.
func single(limits ...ratelimit.Limit) (*Counters, ratelimit.Key, *ratelimit.Effective) {
	ls := ratelimit.NewLimits(limits)
	return NewCounters(1000), ratelimit.Key{ClientID: "client", Username: "user"}, &ratelimit.Effective{User: ls, Client: ls, Mode: ratelimit.Enforce}
}

// hold adds the key to memory.
func hold(c *Counters, k ratelimit.Key, ls *ratelimit.Limits, now time.Time) {
	s, h := c.lookup(k)
	s.Insert(k, h, ls, now.UnixMilli())
}

// read gives the first counter of a key a document, as an exchange does.
func (c *Counters) read(k ratelimit.Key, now time.Time, doc *ratelimit.Document) Finished {
	y := attach(c)
	task, ok := y.Begin(now, y.Of(k)[0].Ticket, 1)
	if !ok {
		panic("not begun")
	}
	return y.Finish(now, &task, Result{Read: true, Document: doc})
}

// mustAdmit fails the test unless exactly want requests pass before one is denied.
func mustAdmit(t rapid.TB, want int64, c *Counters, now time.Time, k ratelimit.Key, e *ratelimit.Effective) {
	t.Helper()
	if got := admittedNow(c, now, k, e); got != want {
		t.Fatalf("%v admitted %d, want %d", k, got, want)
	}
}

// admittedNow counts how many requests pass until one is denied.
func admittedNow(c *Counters, now time.Time, k ratelimit.Key, e *ratelimit.Effective) (n int64) {
	for {
		if d := c.Take(now, k, e, 1); d.Rejected() {
			return n
		}
		n++
	}
}
