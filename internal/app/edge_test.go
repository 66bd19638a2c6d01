package app

import (
	"context"
	"io"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/ratelimit"
)

// Invalid limits that were written directly into the store are ignored. The server keeps the last
// valid ones and reports that on /readyz.
func TestImpossibleStoredLimitsAreRefused(t *testing.T) {
	r := start(t, limited(t, nil), io.Discard)
	bad, err := clientcfg.SetTarget(clientcfg.SettingsTarget, &clientcfg.Value{Policy: ratelimit.Policy{User: []ratelimit.Limit{{Name: "none"}}}})
	check.OK(t, err)
	appendChange(t, r.base.store, time.Now(), bad)
	good := r.limiter.policies.Snapshot().Settings()
	check.OK(t, r.base.follower.Refresh(t.Context()))
	ready := r.edge.ready.report(true)
	if ready.Status != httpapi.Degraded || ready.Checks["limits"] == "" {
		t.Errorf("%+v", ready)
	}
	check.Equal(t, "settings", r.limiter.policies.Snapshot().Settings(), good)
}

// The metadata does not advertise a grant that RFC 9700 2.4 forbids, unless a client is registered
// for it.
//
// Attack (rfc9700): 2.4 password grant. **Deviation**: it exists for clients registered for it.
// Metadata names it only then. Also registry.TestCreateClientChoosesTheUsualGrants.
func TestPasswordGrantIsAdvertisedOnlyWhereItIsUsed(t *testing.T) {
	r := start(t, testConfig(t), io.Discard)
	advertised := func() bool {
		for _, g := range grantTypes(r.base.clients.Directory()) {
			if g == clientcfg.Password {
				return true
			}
		}
		return false
	}
	if advertised() {
		t.Error("it is advertised without a client that uses it")
	}
	register := func(ctx context.Context) error {
		_, _, err := CreateClient(ctx, r.base.store, clientcfg.Client{ID: "legacy", Grants: []clientcfg.Grant{clientcfg.Password}}, time.Now())
		if err != nil {
			return err
		}
		return r.base.clients.Renew(ctx, 0)
	}
	check.OK(t, register(t.Context()))
	if !advertised() {
		t.Error("it is not advertised although a client uses it")
	}
}
