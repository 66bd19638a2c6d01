//go:build !race

package syncer_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStrictShares: if all instances want more of a strict limit than there is, each gets a share.
// The first writer gets the permits, so an instance with a slower connection to the store gets a
// smaller share, but always some.
func TestStrictShares(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit int64
		far   time.Duration // extra time of the last instance, on top of the 4 ms that the others need for a round trip
		least float64       // least share of an instance, and of the last one
		last  float64
	}{
		{"alike", 10, 0, 0.2, 0.2},
		{"alike, a larger limit", 100, 0, 0.28, 0.28},
		{"one further off", 10, 40 * time.Millisecond, 0.2, 0.2},
		{"one further off, a larger limit", 100, 40 * time.Millisecond, 0.28, 0.04},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oneProcessor(t)
			synctest.Test(t, func(t *testing.T) {
				r := newRand(1)
				net := newNetwork(2 * time.Millisecond)
				net.jitter = time.Millisecond
				limit := strictLimit(tc.limit, 10*time.Second)
				limit.Frames, limit.LeaseWait = 20, 500*time.Millisecond
				policy := policyOf(t, limit)
				cluster := make([]*member, 3)
				for i := range cluster {
					p := newPort(net, r.Uint64())
					if i == len(cluster)-1 {
						p.far = tc.far / 2
					}
					cluster[i] = startMember(t, p, r.Uint64(), 0, nil)
				}
				admitted := make([]atomic.Int64, len(cluster))
				var requests sync.WaitGroup
				every := float64(limit.Window) / float64(10*tc.limit)
				for began := time.Now(); time.Since(began) < 20*limit.Window; {
					wait(time.Duration(r.ExpFloat64() * every))
					i := r.IntN(len(cluster))
					requests.Go(func() {
						if d, _ := cluster[i].await(t, 0, policy); !d.Rejected() {
							admitted[i].Add(1)
						}
					})
				}
				requests.Wait()
				var all int64
				for i := range admitted {
					all += admitted[i].Load()
				}
				for i := range admitted {
					least := tc.least
					if i == len(cluster)-1 {
						least = tc.last
					}
					share := float64(admitted[i].Load()) / float64(all)
					say("strict, %3d per 10 s, offered tenfold, %v further: instance %d has %.2f of what is admitted", tc.limit, tc.far, i, share)
					if share < least {
						t.Errorf("instance %d has %.3f of what is admitted, want %v", i, share, least)
					}
				}
			})
		})
	}
}
