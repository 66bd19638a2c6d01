package e2e

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// shortWindow is that of the limits in these tests.
const shortWindow = 3 * time.Second

// shortLimits has a client with 60 requests per window, one with 20, and one whose
// counts stay.
const shortLimits = `
rate_limit:
  default:  { client: [ { name: far, requests: 1000000, window: 24h } ] }
  clients:
    sixty:  { client: [ { name: short, requests: 60, window: 3s } ] }
    twenty: { client: [ { name: short, requests: 20, window: 3s } ] }
`

// TestWallClockIsSet sets the wall clock of one of three processes while they
// share limits.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	c := newCluster(t, shortLimits, "sixty", "twenty", "far")
	c.add()
	c.add()
	set := c.add()
	newWallClock(t).wear(set)
	c.start(c.members...)
	shared := c.share(t)
	for _, step := range append(wallSteps[1:], 0) {
		set.wall.set(step)
		set.awaitClock("wall", step)
		shared.forA(shortWindow / 2)
	}
	shared.end(3)
	checkOnce(t, set, "clocks disagree; process time stays", "alone=wall")
	checkOnce(t, set, "clocks agree again")
	for _, m := range c.members[:2] {
		check.Equal(t, "logs of a server that has the right time", m.logged("clocks"), nil)
	}
}

// TestStoreClockLies lets the clock of the database be wrong for one process and
// for all, and starts processes that have the wrong time in one way or the other.
func TestStoreClockLies(t *testing.T) {
	t.Parallel()
	c := newCluster(t, shortLimits, "sixty", "twenty", "far")
	c.grow(3)
	first := c.members[0]
	shared := c.share(t)
	for _, step := range []time.Duration{time.Hour, -5 * time.Minute, 0} {
		first.proxy.Alter(lies(step))
		first.awaitClock("store", step)
		shared.forA(shortWindow / 2)
	}
	for _, step := range []time.Duration{time.Hour, 0} {
		for _, m := range c.members {
			m.proxy.Alter(lies(step))
		}
		for _, m := range c.members {
			m.awaitClock("store", step)
		}
		shared.forA(shortWindow / 2)
	}
	wrong := c.add()
	newWallClock(t).wear(wrong)
	wrong.wall.set(-time.Hour)
	c.start(wrong)
	wrong.awaitClock("wall", -time.Hour)
	wrong.awaitClock("store", 0)
	misled := c.add()
	misled.proxy.Alter(lies(5 * time.Minute))
	c.start(misled)
	misled.awaitClock("store", 5*time.Minute)
	misled.awaitClock("wall", 0)
	shared.forA(shortWindow)
	shared.end(5)

	for _, m := range c.members[1:3] {
		checkOnce(t, m, "clocks disagree; process time stays", "alone=store")
		checkOnce(t, m, "clocks agree again")
	}
	checkOnce(t, wrong, "clocks disagree; process time stays", "alone=wall")
	checkOnce(t, misled, "clocks disagree; process time stays", "alone=store")
}

// checkOnce checks that one line of the log has all of the texts.
func checkOnce(t *testing.T, m *member, texts ...string) {
	t.Helper()
	lines := m.logged(texts[0])
	for _, text := range texts[1:] {
		if len(lines) == 1 && !strings.Contains(lines[0], text) {
			t.Errorf("server %d logs %q without %q", m.number, lines[0], text)
		}
	}
	if len(lines) != 1 {
		t.Errorf("server %d logs %q %d times, want once: %q", m.number, texts[0], len(lines), lines)
	}
}

// sharing is a cluster that gets requests for the clients of shortLimits.
type sharing struct {
	c     *cluster
	t     *testing.T
	watch *watch
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// share begins to send requests, at the start of a window: 40 a second for each client, which is twice
// and six times their limits.
func (c *cluster) share(t *testing.T) *sharing {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &sharing{c: c, t: t, watch: c.watch(), stop: stop}
	wait(t, time.Until(frameOf(time.Now(), shortWindow).Add(shortWindow)))
	s.done.Go(func() { c.turns(ctx, 8*time.Millisecond, "sixty", "twenty", "far") })
	return s
}

// forA lets it go on for a time.
func (s *sharing) forA(d time.Duration) { wait(s.t, d) }

// end stops everything and checks what was admitted and counted.
func (s *sharing) end(processes int64) {
	s.t.Helper()
	s.stop()
	s.done.Wait()
	s.c.stop(s.c.members...)
	s.watch.end()
	s.watch.checkFrames()
	s.watch.checkWindows("sixty", 60, shortWindow, processes)
	s.watch.checkWindows("twenty", 20, shortWindow, processes)
	if issued, stored := s.c.ledger.issued()["far"], s.c.stored()["far"]; issued != stored {
		s.t.Errorf("far: %d tokens, %d counted", issued, stored)
	}
}

// wait lets time pass.
func wait(tb testing.TB, d time.Duration) {
	tb.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-tb.Context().Done():
	}
}

// awaitClock waits until a process shows by how much a clock is ahead.
func (m *member) awaitClock(clock string, ahead time.Duration) {
	m.tb.Helper()
	shown := fmt.Sprintf("server %d shows that the %s clock is %v ahead", m.number, clock, ahead)
	check.Eventually(m.tb, shown, func() bool {
		offset := m.metric(`oauth_clock_offset_seconds{clock="` + clock + `"}`)
		return math.Abs(offset-ahead.Seconds()) < 2
	})
}

// metric is the value of a series; NaN if it is not there.
func (m *member) metric(series string) float64 {
	m.tb.Helper()
	_, rest, found := strings.Cut(metricsOf(m.tb, m.admin), "\n"+series+" ")
	text, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		return math.NaN()
	}
	return v
}

// lies is a server whose clock is ahead, in its description of itself and in the dates of heartbeats.
func lies(ahead time.Duration) mongotest.Alteration {
	later := func(doc bson.D, name string) bson.D {
		return mongotest.With(doc, name, mongotest.Get[bson.DateTime](doc, name)+bson.DateTime(ahead.Milliseconds()))
	}
	return mongotest.Alteration{Reply: func(command, reply bson.D) bson.D {
		if command[0].Value != "instances" {
			return later(reply, "localTime")
		}
		cursor := mongotest.Get[bson.D](reply, "cursor")
		found := slices.Clone(mongotest.Get[bson.A](cursor, "firstBatch"))
		for i := range found {
			found[i] = later(found[i].(bson.D), "changed") //nolint:forcetypeassert // a reply of the server
		}
		return mongotest.With(reply, "cursor", mongotest.With(cursor, "firstBatch", found))
	}}
}
