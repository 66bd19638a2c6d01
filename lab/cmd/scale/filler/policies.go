package main

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// fillPolicies gives so many clients a policy, in few entries.
func fillPolicies(ctx context.Context, opened app.Store, n int) error {
	const each = 1000
	follower, err := store.NewFollower(ctx, opened)
	if err != nil {
		return err
	}
	policies, err := clientcfg.NewPolicySource(ctx, follower, clientcfg.PolicyOptions{})
	if err != nil {
		return err
	}
	for first := 0; first < n; first += each {
		var changes []clientcfg.Change
		for i := first; i < min(first+each, n); i++ {
			limit := ratelimit.NewLimit("per-minute", int64(i%500+1), time.Minute)
			change, err := clientcfg.ChangePolicy(fmt.Sprintf("client-%07d", i), &clientcfg.ClientPolicy{
				Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
			})
			if err != nil {
				return err
			}
			changes = append(changes, change)
		}
		_, err := policies.Change(ctx, func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
			return clientcfg.Event{At: time.Now().UTC().Truncate(time.Millisecond), Action: "set", Target: "policies", Changes: changes}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
