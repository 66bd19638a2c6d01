package storetest

import (
	"context"
	"testing"

	"oauth-server/internal/syncer"
)

// testContexts calls every method with a cancelled context. Every call must return the context's
// error and must have no effect.
func testContexts(t *testing.T, target Target) {
	t.Helper()
	b := target.fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range cancelled(ctx, b) {
		failWith(t, name, context.Canceled, err)
	}
	if r := load(t, b, counterID("new")); r != nil {
		t.Errorf("a cancelled write has made %+v", r)
	}
}

func cancelled(ctx context.Context, b Backend) map[string]error {
	errs := map[string]error{}
	_, errs["Exchange to write"] = b.Exchange(ctx, []syncer.Item{{ID: counterID("new"), Write: adding("me", 1)}})
	_, errs["Exchange to read"] = b.Exchange(ctx, []syncer.Item{{ID: counterID("new"), Read: true}})
	_, errs["Exchange of nothing"] = b.Exchange(ctx, nil)
	_, errs["Now"] = b.Now(ctx)
	_, errs["Sweep"] = b.Sweep(ctx, Epoch.AddDate(1, 0, 0))
	return errs
}
