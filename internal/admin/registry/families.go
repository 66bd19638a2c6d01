package registry

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"oauth-server/internal/clientcfg"
)

// revokedAtOnce is how many families are revoked concurrently. A store commits concurrent writes
// together, so many cost little more than one.
const revokedAtOnce = 64

// RevokeFamilies revokes the family with that ID, or all families of a user if id is empty: refresh
// tokens and access tokens, at once on every instance. It returns how many it revoked. A user may
// have 100,000 families, which take a minute. Errors: [ErrNoFamily], [store.ErrNotFound],
// *[PartlyError].
func (r *Service) RevokeFamilies(ctx context.Context, typed, id string) (int, error) {
	var revoked atomic.Int64
	_, err := r.families(ctx, typed, func(some []Family) error {
		calls, ended := errgroup.WithContext(ctx)
		calls.SetLimit(revokedAtOnce)
		for i := range some {
			f := &some[i]
			if id != "" && f.ID != id {
				continue
			}
			calls.Go(func() error {
				if err := ended.Err(); err != nil { // another one has failed, or the caller has gone
					return err
				}
				done, err := r.revokeFamily(ctx, f)
				if done {
					revoked.Add(1)
				}
				return err
			})
		}
		err := calls.Wait()
		if err == nil && id != "" && revoked.Load() > 0 {
			err = errEnough
		}
		return err
	})
	n := int(revoked.Load())
	if err == nil && id != "" && n == 0 {
		err = ErrNoFamily
	}
	return n, partly(n, err)
}

// revokeFamily revokes a family. done is false if it was already revoked.
func (r *Service) revokeFamily(ctx context.Context, f *Family) (done bool, err error) {
	if revoked, err := r.grants.Revoked(ctx, f.record.RevocationNames()...); revoked || err != nil {
		return false, err
	}
	name, until := f.record.Revocation(r.o.Now())
	before := map[string]string{"family": f.ID, "client_id": f.ClientID}
	err = r.Record(ctx, "revoke_family", clientcfg.UserTarget(f.record.Username), before, nil, func() error { return r.grants.Revoke(ctx, name, until) })
	return err == nil, err
}
