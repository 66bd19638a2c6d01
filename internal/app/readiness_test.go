package app

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

func TestReadiness(t *testing.T) {
	degraded := func(checks map[string]string) httpapi.Readiness {
		return httpapi.Readiness{Status: httpapi.Degraded, Checks: checks}
	}
	for _, tt := range []struct {
		name string
		c    condition
		want httpapi.Readiness
	}{
		{"nothing is wrong", condition{}, httpapi.Readiness{Status: httpapi.Ready}},
		{"clocks a little apart", condition{clock: clock.State{Wall: 900 * time.Millisecond, Store: -time.Second}}, httpapi.Readiness{Status: httpapi.Ready}},
		{
			"stopping, whatever else is wrong",
			condition{stopping: true, outage: true},
			httpapi.Readiness{Status: httpapi.Down, Checks: map[string]string{"server": "stopping"}},
		},
		{"the store is silent", condition{silent: 12400 * time.Millisecond}, degraded(map[string]string{"store": "not answering for 12s"})},
		{"silent for a moment", condition{silent: time.Millisecond}, degraded(map[string]string{"store": "not answering for 1s"})},
		{"stored limits cannot be used", condition{refused: true}, degraded(map[string]string{"limits": "some in the store cannot be used; the last good ones stay in force"})},
		{
			"a client cannot be read",
			condition{unreadable: map[string]error{"shop": errors.New("x"), "app\n": errors.New("y")}},
			httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{"clients": `unreadable and not served: "app\n", "shop"`}},
		},
		{
			"the configuration has policies for unknown clients",
			condition{unregistered: []string{"a", "b\"", "c", "d", "e", "f"}},
			httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{
				"configuration": `has a policy for unregistered clients: "a", "b\"", "c", "d", "e" and 1 more`,
			}},
		},
		{
			"many clients cannot be read, and more",
			condition{refused: true, unreadable: map[string]error{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil, "f": nil, "g": nil}},
			degraded(map[string]string{
				"clients": `unreadable and not served: "a", "b", "c", "d", "e" and 2 more`,
				"limits":  "some in the store cannot be used; the last good ones stay in force",
			}),
		},
		{
			"counts are not shared",
			condition{unshared: 3 * time.Minute, outage: true},
			degraded(map[string]string{"counts": "sharing has been failing for 3m0s; no count is lost", "outage": "limits follow their on_outage"}),
		},
		{
			"a stepped machine",
			condition{clock: clock.State{Wall: time.Hour, Store: 20 * time.Millisecond, Alone: clock.Wall}},
			degraded(map[string]string{"clock": "this machine's clock is 1h0m0s ahead of the others: tokens use it, counts do not"}),
		},
		{
			"a store that lies",
			condition{clock: clock.State{Store: -5 * time.Minute, Alone: clock.Store}},
			degraded(map[string]string{"clock": "the store's clock is 5m0s behind the others: counts do not use it"}),
		},
		{
			"a resumed machine",
			condition{clock: clock.State{Wall: 10 * time.Minute, Store: 10 * time.Minute, Alone: clock.Process}},
			degraded(map[string]string{"clock": "process time differs from both clocks: the store's is 10m0s ahead of it, and counts use that"}),
		},
		{
			"no two clocks agree",
			condition{clock: clock.State{Wall: -2 * time.Second, Store: time.Minute, Alone: clock.AllClocks}},
			degraded(map[string]string{"clock": "no two clocks agree: this machine's is 2s behind process time, the store's 1m0s ahead of it"}),
		},
		{
			"requests are shed",
			condition{shedding: shedding{lasted: 12 * time.Second, upTo: ratelimit.SheddablePlus}},
			httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{
				"overload": "refusing the least critical requests for 12s, up to sheddable_plus",
			}},
		},
		{
			"requests were shed a moment ago",
			condition{shedding: shedding{lasted: 12 * time.Second}},
			httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{"overload": "refusing the least critical requests for 12s"}},
		},
		{
			"the store is silent, and requests are shed",
			condition{silent: time.Minute, shedding: shedding{lasted: time.Second, upTo: ratelimit.Sheddable}},
			degraded(map[string]string{"store": "not answering for 1m0s", "overload": "refusing the least critical requests for 1s, up to sheddable"}),
		},
		{
			"nearly all is shed, and the store is silent",
			condition{silent: time.Minute, shedding: shedding{lasted: 12 * time.Second, upTo: ratelimit.CriticalPlus, down: true}},
			httpapi.Readiness{Status: httpapi.Down, Checks: map[string]string{
				"store": "not answering for 1m0s", "overload": "refusing nearly all requests, including the most critical ones; overloaded for 12s",
			}},
		},
		{
			"nearly all was shed",
			condition{shedding: shedding{down: true}},
			httpapi.Readiness{Status: httpapi.Down, Checks: map[string]string{
				"overload": "refused nearly all requests until a moment ago, including the most critical ones",
			}},
		},
		{
			"everything",
			condition{silent: time.Minute, refused: true, unshared: time.Minute, outage: true, clock: clock.State{Wall: 2 * time.Second, Alone: clock.Wall}},
			degraded(map[string]string{
				"store": "not answering for 1m0s", "limits": "some in the store cannot be used; the last good ones stay in force",
				"counts": "sharing has been failing for 1m0s; no count is lost", "outage": "limits follow their on_outage",
				"clock": "this machine's clock is 2s ahead of the others: tokens use it, counts do not",
			}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Equal(t, "readiness", tt.c.readiness(true), tt.want)
		})
	}
}

// TestReadinessForThePublic checks that the public sees the number of clients with problems, and
// not their names.
func TestReadinessForThePublic(t *testing.T) {
	c := condition{unreadable: map[string]error{"shop": errors.New("x")}, unregistered: []string{"partner", "bank"}}
	want := httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{
		"clients":       "unreadable and not served: 1",
		"configuration": "has a policy for unregistered clients: 2",
	}}
	check.Equal(t, "readiness", c.readiness(false), want)
}

// TestReadinessOfTheSyncer checks that the reports of the syncer appear on /readyz and in the admin
// API.
func TestReadinessOfTheSyncer(t *testing.T) {
	s := idle(t, testConfig(t), Options{})
	check.Equal(t, "status at first", s.edge.ready.report(true).Status, httpapi.Ready)
	s.limiter.stats.at = time.Time{}
	s.limiter.stats.read = func() syncer.Stats {
		return syncer.Stats{
			Degraded: true, DegradedFor: 7 * time.Second, Stalled: true, Unconfirmed: 8 * time.Second,
			Clock: clock.State{Wall: -time.Minute, Store: time.Second / 2, Alone: clock.Wall},
		}
	}
	want := httpapi.Readiness{Status: httpapi.Degraded, Checks: map[string]string{
		"counts": "sharing has been failing for 7s; no count is lost",
		"outage": "limits follow their on_outage",
		"clock":  "this machine's clock is 1m0s behind the others: tokens use it, counts do not",
	}}
	check.Equal(t, "/readyz", s.edge.ready.report(true), want)
	st := s.limiter.syncState()
	if !st.Outage || !st.Degraded || st.UnconfirmedMillis != 8000 || st.ClockAlone != "wall" || st.WallOffset != -60 || st.StoreOffset != 0.5 {
		t.Errorf("operators see %+v", st)
	}
}

func TestSyncStatsAreGatheredOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		s := syncStats{read: func() syncer.Stats {
			reads++
			return syncer.Stats{Waiting: reads}
		}}
		for range 1000 {
			check.Equal(t, "times gathered at one moment", s.get().Waiting, 1)
		}
		time.Sleep(statsAge) //nolint:forbidigo // simulated
		check.Equal(t, "times gathered", s.get().Waiting, 2)
	})
}
