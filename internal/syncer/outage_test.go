//go:build !race

package syncer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/ratelimit"
)

// outageTrial is a cluster that gets twelve times a limit of 100 a minute in requests while its
// database is unavailable for five minutes.
type outageTrial struct {
	on        ratelimit.OnOutage
	instances int
	event     string // what happens to the cluster during the outage
}

// run returns the requests admitted in each minute. The first minute is the one before the outage.
// The database becomes unavailable in the second minute, after the time into: a third of the
// minute, or exactly at its begin.
func (o outageTrial) run(t *testing.T, into time.Duration) (minutes []int) {
	t.Helper()
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		net, r := newNetwork(2*time.Millisecond), newRand(1)
		l := ratelimit.NewLimit("limit", 100, time.Minute)
		l.OnOutage = o.on
		policy := policyOf(t, l)
		var cluster []*member
		for range o.instances {
			cluster = append(cluster, newMember(t, net, r.Uint64(), 0, nil))
		}
		wait(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		began := time.Now()
		minutes = make([]int, 9)
		away := false
		for time.Since(began) < 9*time.Minute {
			passed := time.Since(began)
			if out := passed >= time.Minute+into && passed < 6*time.Minute+into; out != away {
				away = out
				if strings.HasPrefix(o.event, "writes fail") {
					net.refuse(out)
				} else {
					net.become(faults{}, out)
				}
			}
			switch {
			case o.event == "half of them die" && passed > 3*time.Minute && len(cluster) > (o.instances+1)/2:
				cluster[0].syncer.Kill()
				cluster = cluster[1:]
			case o.event == "writes fail, reads work, as many join" && passed > 3*time.Minute && len(cluster) < 2*o.instances:
				cluster = append(cluster, newMember(t, net, r.Uint64(), 0, nil))
			}
			m := cluster[r.IntN(len(cluster))]
			if m.take(keyOf(0), policy, 1).Outcome == ratelimit.Allowed {
				minutes[int(passed/time.Minute)]++
			}
			wait(time.Duration(r.ExpFloat64() * float64(50*time.Millisecond)))
		}
		for _, m := range cluster {
			m.syncer.Kill()
		}
	})
	return minutes
}

// TestOutage checks how many requests the instances together admit of a limit of 100 a minute while
// their database is unavailable.
func TestOutage(t *testing.T) {
	for _, tc := range []struct {
		outageTrial
		first, later int // the most in the first minute of the outage, and in a later one
	}{
		{outageTrial{ratelimit.Share, 2, ""}, 104, 102},
		{outageTrial{ratelimit.Share, 3, ""}, 107, 103},
		{outageTrial{ratelimit.Share, 10, ""}, 125, 110},
		{outageTrial{ratelimit.Memory, 2, ""}, 200, 200},
		{outageTrial{ratelimit.Memory, 3, ""}, 300, 300},
		{outageTrial{ratelimit.Memory, 10, ""}, 1000, 1000},
		{outageTrial{ratelimit.Deny, 2, ""}, 104, 0},
		{outageTrial{ratelimit.Deny, 3, ""}, 107, 0},
		{outageTrial{ratelimit.Deny, 10, ""}, 125, 0},
		{outageTrial{ratelimit.Share, 10, "writes fail, reads work"}, 125, 110},
		{outageTrial{ratelimit.Share, 10, "writes fail, reads work, as many join"}, 125, 205}, // each admits its share
		{outageTrial{ratelimit.Share, 10, "half of them die"}, 125, 110},
	} {
		t.Run(fmt.Sprintf("%s, %d instances %s", tc.on, tc.instances, tc.event), func(t *testing.T) {
			for _, into := range []time.Duration{0, 20 * time.Second} {
				minutes := tc.run(t, into)
				say("%-7s %2d instances, %s%v into a minute: %v", tc.on, tc.instances, tc.event, into, minutes)
				if minutes[1] > tc.first {
					t.Errorf("%d were admitted in the minute that it began", minutes[1])
				}
				for i, n := range minutes[2:6] {
					if n > tc.later {
						t.Errorf("%d were admitted in minute %d", n, i+2)
					}
				}
				if n := minutes[8]; n < 95 || n > 104 {
					t.Errorf("%d were admitted in the second minute after it", n)
				}
			}
		})
	}
}
