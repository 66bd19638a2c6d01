package mongo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

// node is one process of a cluster: its counters, its syncer, and its own connections to the
// server, through the proxy.
type node struct {
	counters *counting.Counters
	syncer   *syncer.Syncer
	clock    *clock.Clock
	policy   *ratelimit.Effective
	admitted atomic.Int64
}

const nodeKeys = 4

func startNode(t *testing.T, store *Store) *node {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-hour", 1_000_000, time.Hour)}
	policies, err := ratelimit.Compile(settings)
	check.OK(t, err)
	cfg := syncer.DefaultConfig()
	cfg.Interval, cfg.Beat, cfg.Timeout, cfg.MaxBackoff = 50*time.Millisecond, 300*time.Millisecond, time.Second, 200*time.Millisecond
	n := &node{counters: counting.NewCounters(1000), clock: cfg.Clock, policy: policies.For("shop")}
	n.syncer = syncer.New(n.counters, store, syncer.NewHeartbeats(store), cfg)
	n.syncer.Start(t.Context())
	return n
}

// request sends requests of all keys for period.
func (n *node) request(t *testing.T, period time.Duration) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(period); time.Now().Before(end); <-tick.C {
		for k := range nodeKeys {
			key := ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("user ", k)}
			if d := n.counters.Take(n.clock.Now(), key, n.policy, 1); d.Rejected() {
				t.Errorf("denied far below the limit: %+v", d)
				return
			}
			n.admitted.Add(1)
		}
	}
}

// TestClusterThroughFaults runs whole syncers against the server while requests and replies are
// lost, some arrive much later, the server is unavailable for a while, and one process stops in the
// middle. At the end the database has all admitted requests, less at most the number that the
// stopped process reported as left.
func TestClusterThroughFaults(t *testing.T) {
	t.Parallel()
	_, direct, proxy := throughProxy(t)
	nodes := make([]*node, 5)
	for i := range nodes {
		nodes[i] = startNode(t, openAt(t, proxy.URI, direct.db.Name()))
	}
	proxy.Decide(lossy(5))
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() { n.request(t, 1500*time.Millisecond) })
	}
	wg.Wait()
	left := stopNode(t, nodes[0], 300*time.Millisecond)
	proxy.Break()
	for _, n := range nodes[1:] {
		wg.Go(func() { n.request(t, 500*time.Millisecond) })
	}
	wg.Wait()
	proxy.Restore()
	for _, n := range nodes[1:] {
		wg.Go(func() { n.request(t, 500*time.Millisecond) })
	}
	wg.Wait()
	deliverAll(t, proxy)
	proxy.Decide(nil)
	for i, n := range nodes[1:] {
		check.Equal(t, fmt.Sprint("requests that node ", i+1, " could not write"), stopNode(t, n, 30*time.Second).Requests, 0)
	}
	deliverAll(t, proxy)
	var admitted int64
	for _, n := range nodes {
		admitted += n.admitted.Load()
	}
	stored := countAll(t, direct)
	if stored > admitted || stored < admitted-left.Requests {
		t.Errorf("%d requests were admitted, %d left by the one that stopped early, and the database has %d", admitted, left.Requests, stored)
	}
	t.Logf("%d admitted, %d left, %d stored", admitted, left.Requests, stored)
}

func stopNode(t *testing.T, n *node, patience time.Duration) syncer.Left {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	left, err := n.syncer.Stop(ctx)
	if (err != nil) != (left != syncer.Left{}) {
		t.Errorf("left %+v, but says %v", left, err)
	}
	return left
}

func deliverAll(t *testing.T, proxy *mongotest.Proxy) {
	t.Helper()
	_, err := proxy.Deliver()
	check.OK(t, err)
}

func countAll(t *testing.T, s *Store) (sum int64) {
	t.Helper()
	cursor, err := s.counters.Find(t.Context(), bson.D{})
	check.OK(t, err)
	for cursor.Next(t.Context()) {
		r := counterRecord(cursor.Current)
		sum += counted(&r)
	}
	check.OK(t, cursor.Err())
	return sum
}
