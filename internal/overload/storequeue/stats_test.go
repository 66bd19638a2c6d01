package storequeue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// ofCriticality returns the lowest rank of a criticality.
func ofCriticality(c ratelimit.Criticality) overload.Rank {
	return overload.Rank(c-ratelimit.Sheddable) * (overload.Ranks / overload.Criticalities)
}

// TestCallsByCriticality checks the data for operators: the outcomes of calls, and the criticality
// that is currently refused.
func TestCallsByCriticality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
		defer end()
		check.Equal(t, "refused up to, before", w.Stats().UpTo, ratelimit.CriticalityUnset)
		w.call(ranked(t, ofCriticality(ratelimit.Critical)), "critical")
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // simulated time
		w.call(ranked(t, ofCriticality(ratelimit.SheddablePlus)), "sheddable_plus")
		w.call(ranked(t, ofCriticality(ratelimit.SheddablePlus)), "sheddable_plus")
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // simulated time
		synctest.Wait()
		want := storequeue.Stats{Mode: ratelimit.Enforce, Limit: 1, InFlight: 1, Refusing: 1500 * time.Millisecond, UpTo: ratelimit.Critical}
		want.Calls[0][overload.Admitted] = 1
		want.Calls[1][overload.Shed] = 2
		want.Calls[2][overload.Shed] = 1
		check.Equal(t, "statistics", w.Stats(), want)
		time.Sleep(time.Second) //nolint:forbidigo // simulated time
		check.Equal(t, "refused up to", w.Stats().UpTo, ratelimit.SheddablePlus)
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated time
		check.Equal(t, "refused up to, afterwards", w.Stats().UpTo, ratelimit.CriticalityUnset)
	})
}

// TestWhoWasRefused checks that each refused request is reported once, however many of its calls
// were refused, with its context.
func TestWhoWasRefused(t *testing.T) {
	for mode, dryRun := range map[ratelimit.Mode]bool{ratelimit.Enforce: false, ratelimit.DryRun: true} {
		synctest.Test(t, func(t *testing.T) {
			seen := map[string]int{}
			w, end := full(t, storequeue.Options{Mode: mode, Refused: func(ctx context.Context, dryRun bool) {
				seen[fmt.Sprint(overload.Requested(ctx).ClientID, " ", dryRun)]++
			}})
			request := func(client string) context.Context {
				return overload.WithRequest(storequeue.NewRequest(t.Context()), &overload.Request{ClientID: client}, 3)
			}
			shop := request("shop")
			for _, ctx := range []context.Context{shop, shop, request("shop"), request("app")} {
				go func() {
					pass, err := w.Enter(ctx)
					if err == nil {
						time.Sleep(time.Second) //nolint:forbidigo // simulated time
					}
					pass.Leave(true)
				}()
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // simulated time
			w.Stats()                   // in dry-run, what has waited for too long is noticed
			end()
			synctest.Wait()
			want := map[string]int{fmt.Sprint("shop ", dryRun): 2, fmt.Sprint("app ", dryRun): 1}
			check.Equal(t, fmt.Sprint("refused in ", mode), seen, want)
		})
	}
}
