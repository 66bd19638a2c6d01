package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// outageLimits has a client for each way to decide while the database is away.
const outageLimits = `
rate_limit:
  clients:
    share:  { client: [ { name: l, requests: 100, window: 5s, on_outage: share } ] }
    memory: { client: [ { name: l, requests: 100, window: 5s, on_outage: memory } ] }
    deny:   { client: [ { name: l, requests: 100, window: 5s, on_outage: deny } ] }
`

const (
	outageLimit  = 100
	outageWindow = 5 * time.Second
)

// outage is three processes that are cut off their database, in the middle of the
// second of six windows, until the fifth begins.
type outage struct {
	*cluster
	watch     *watch
	begin     time.Time
	cut, back time.Time
}

var outageWindows = []string{"before", "cut off in it", "away", "away", "back", "later"}

// window is the start of a window; parts of one are allowed.
func (o *outage) window(n float64) time.Time {
	return o.begin.Add(time.Duration(n * float64(outageWindow)))
}

// TestDatabaseAway counts what is admitted meanwhile. With -v it prints the figures.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	o := &outage{cluster: newCluster(t, outageLimits, "share", "memory", "deny")}
	o.run()
	for _, client := range []string{"share", "memory", "deny"} {
		t.Log(o.figures(client))
	}
	o.check()
}

func (o *outage) run() {
	o.t.Helper()
	o.grow(3)
	o.watch = o.cluster.watch()
	o.begin = frameOf(time.Now(), outageWindow).Add(outageWindow)
	wait(o.t, time.Until(o.begin))
	ctx, stop := context.WithCancel(o.t.Context())
	var load sync.WaitGroup
	for _, m := range o.members {
		load.Go(func() { o.turnsAt(ctx, m, 15*time.Millisecond, "memory", "share", "memory", "deny") })
	}
	wait(o.t, time.Until(o.window(1.5)))
	o.cut = time.Now()
	for _, m := range o.members {
		m.proxy.Break()
	}
	wait(o.t, time.Until(o.window(4)))
	o.back = time.Now()
	for _, m := range o.members {
		m.proxy.Restore()
	}
	wait(o.t, time.Until(o.window(6)))
	stop()
	load.Wait()
	o.stop(o.members...)
	o.watch.end()
}

// figures is what a client was admitted, for people to read.
func (o *outage) figures(client string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "on_outage: %-6s  of %d per %v, 3 processes:", client, outageLimit, outageWindow)
	admitted := o.ledger.perFrame(client, outageWindow)
	for i, name := range outageWindows {
		fmt.Fprintf(&b, "  %s %d", name, admitted[o.window(float64(i))])
	}
	return b.String()
}

// beyond is what may be admitted beyond a limit that is shared: one request at each process, and two of the client that
// is asked twice as often.
var beyond = map[string]int64{"share": 3, "memory": 6, "deny": 3}

// few is what may be admitted beyond a limit while nothing is shared.
const few = 6

func (o *outage) check() {
	o.t.Helper()
	most := func(client string, i int, limit int64) {
		o.t.Helper()
		if n := o.ledger.perFrame(client, outageWindow)[o.window(float64(i))]; n > limit {
			o.t.Errorf("%s: %d admitted in window %d (%s), want at most %d", client, n, i, outageWindows[i], limit)
		}
	}
	for _, client := range []string{"share", "memory", "deny"} {
		for _, i := range []int{0, 5} {
			most(client, i, outageLimit+beyond[client]+o.watch.unseen(client, o.window(float64(i)), outageWindow))
		}
	}
	for _, i := range []int{2, 3} {
		most("share", i, outageLimit+few)
		most("memory", i, 3*(outageLimit+1))
		o.least("share", i, 50, outageLimit/2)
		o.least("memory", i, outageLimit*6/5, 2*outageLimit)
	}
	noticed := o.cut.Add(2*time.Second + o.watch.slow(o.cut, o.back))
	if n := o.ledger.count(func(r *request) bool {
		return r.client == "deny" && r.outcome == admitted && r.began.After(noticed) && r.ended.Before(o.back)
	}); n > 0 {
		o.t.Errorf("deny: %d admitted from %v after the cut on", n, noticed.Sub(o.cut))
	}
}

// least checks that a client was admitted enough in a window, if each process was
// asked so often in it.
func (o *outage) least(client string, i int, asked, least int64) {
	o.t.Helper()
	start := o.window(float64(i))
	for _, m := range o.members {
		if n := o.ledger.count(func(r *request) bool {
			return r.client == client && r.member == m.number && frameOf(r.began, outageWindow).Equal(start)
		}); n < asked {
			o.t.Logf("%s: server %d was asked %d times only in window %d", client, m.number, n, i)
			return
		}
	}
	if n := o.ledger.perFrame(client, outageWindow)[start]; n < least {
		o.t.Errorf("%s: %d admitted in window %d (%s), want at least %d", client, n, i, outageWindows[i], least)
	}
}
