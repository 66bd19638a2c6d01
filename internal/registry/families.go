package registry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"oauth-server/internal/clientcfg"
)

// revokedAtOnce is how many families are revoked at the same time. A store confirms what comes at the same
// time together, so that many cost little more than one.
const revokedAtOnce = 64

// RevokeFamilies revokes the family of that ID, or all of a user if it is empty: refresh tokens and
// access tokens, at once on every instance. It returns how many. All can be 100,000, and take a minute.
// Errors: [ErrNoFamily], [grants.ErrNotFound], *[PartlyError].
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

// revokeFamily reports whether it has revoked the family, which may have been revoked before.
func (r *Registry) revokeFamily(ctx context.Context, f *Family) (done bool, err error) {
	if revoked, err := r.grants.Revoked(ctx, f.record.RevocationNames()...); revoked || err != nil {
		return false, err
	}
	ch := change{action: "revoke_family", target: clientcfg.UserTarget(f.record.Username), before: map[string]string{"family": f.ID, "client_id": f.ClientID}}
	name, until := f.record.Revocation(r.o.Now())
	err = r.record(ctx, ch, func() error { return r.grants.Revoke(ctx, name, until) })
	return err == nil, err
}

// atOnce calls do for all items, of which at most so many at the same time, until one fails. It returns when
// all calls have.
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
