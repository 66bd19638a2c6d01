package main

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// fillPolicies gives so many clients a policy, in few entries.
func fillPolicies(ctx context.Context, store app.Store, n int) error {
	const each = 1000
	for first, version := 0, int64(1); first < n; first, version = first+each, version+1 {
		entry := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{
			Version: version, ID: secret.ID(), At: time.Now().UTC().Truncate(time.Millisecond), Action: "set", Target: "policies",
		}}
		for i := first; i < min(first+each, n); i++ {
			limit := ratelimit.NewLimit("per-minute", int64(i%500+1), time.Minute)
			change, err := clientcfg.ChangePolicy(fmt.Sprintf("client-%07d", i), &clientcfg.ClientPolicy{
				Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
			})
			if err != nil {
				return err
			}
			entry.Changes = append(entry.Changes, change)
		}
		if err := store.AppendPolicyEntry(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}
