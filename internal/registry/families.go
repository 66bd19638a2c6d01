package registry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"oauth-server/internal/clientcfg"
)

// revokedAtOnce is how many families are revoked concurrently. A store commits concurrent writes
// together, so many cost little more than one.
const revokedAtOnce = 64

// RevokeFamilies revokes the family with that ID, or all families of a user if id is empty: refresh
// tokens and access tokens, at once on every instance. It returns how many it revoked. A user may
// have 100,000 families, which take a minute. Errors: [ErrNoFamily], [store.ErrNotFound],
// *[PartlyError].
func (r *Registry) RevokeFamilies(ctx context.Context, typed, id string) (int, error) {
	var revoked atomic.Int64
	_, err := r.families(ctx, typed, func(some []Family) error {
		return atOnce(revokedAtOnce, some, func(f *Family) error {
			if id != "" && f.ID != id {
				return nil
			}
			done, err := r.revokeFamily(ctx, f)
			if done {
				revoked.Add(1)
			}
			if done && id != "" {
				return errEnough
			}
			return err
		})
	})
	n := int(revoked.Load())
	if err == nil && id != "" && n == 0 {
		err = ErrNoFamily
	}
	return n, partly(n, err)
}

// revokeFamily revokes a family. done is false if it was already revoked.
func (r *Registry) revokeFamily(ctx context.Context, f *Family) (done bool, err error) {
	if revoked, err := r.grants.Revoked(ctx, f.record.RevocationNames()...); revoked || err != nil {
		return false, err
	}
	ch := change{action: "revoke_family", target: clientcfg.UserTarget(f.record.Username), before: map[string]string{"family": f.ID, "client_id": f.ClientID}}
	name, until := f.record.Revocation(r.o.Now())
	err = r.record(ctx, ch, func() error { return r.grants.Revoke(ctx, name, until) })
	return err == nil, err
}

// atOnce calls do for all items, with at most most concurrent calls, until one fails. It returns
// after all calls have ended.
func atOnce[T any](most int, items []T, do func(item *T) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	var calls sync.WaitGroup
	errs := make([]error, min(most, len(items)))
	for i := range errs {
		calls.Go(func() {
			for errs[i] == nil && !failed.Load() {
				item := int(next.Add(1)) - 1
				if item >= len(items) {
					return
				}
				if errs[i] = do(&items[item]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	calls.Wait()
	return errors.Join(errs...)
}
