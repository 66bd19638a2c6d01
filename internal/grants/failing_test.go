package grants_test

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// failing is a Store with one failing operation, which fails once or always.
type failing struct {
	grants.Store
	operation string
	err       error
	hits      int

	begun        func(operation string)
	looked       func()    // called after a refresh token was read
	revokedUntil time.Time // of the last revocation
}

// failingWorld is a world with a failing store.
func failingWorld(tb testing.TB, edits ...func(*grants.Options)) (*world, *failing) {
	tb.Helper()
	f := &failing{}
	return newWorld(tb, append(edits, func(o *grants.Options) { f.Store = o.Store; o.Store = f })...), f
}

func (f *failing) check(operation string) error {
	if f.begun != nil {
		f.begun(operation)
	}
	if f.operation != operation {
		return nil
	}
	f.hits++
	return f.err
}

func (f *failing) Client(ctx context.Context, id string) (clientcfg.Client, error) {
	if err := f.check("Client"); err != nil {
		return clientcfg.Client{}, err
	}
	return f.Store.Client(ctx, id)
}

func (f *failing) ChangeKnown(ctx context.Context, u *grants.User, edit func(*grants.Known)) error {
	if err := f.check("ChangeKnown"); err != nil {
		return err
	}
	return f.Store.ChangeKnown(ctx, u, edit)
}

func (f *failing) PutAgreement(ctx context.Context, a grants.Agreement) error {
	if err := f.check("PutAgreement"); err != nil {
		return err
	}
	return f.Store.PutAgreement(ctx, a)
}

func (f *failing) DeleteAgreement(ctx context.Context, a *grants.Agreement) error {
	if err := f.check("DeleteAgreement"); err != nil {
		return err
	}
	return f.Store.DeleteAgreement(ctx, a)
}

func (f *failing) CreateCode(ctx context.Context, c grants.Code) error {
	if err := f.check("CreateCode"); err != nil {
		return err
	}
	return f.Store.CreateCode(ctx, c)
}

func (f *failing) Code(ctx context.Context, d secret.Digest) (grants.Code, error) {
	if err := f.check("Code"); err != nil {
		return grants.Code{}, err
	}
	return f.Store.Code(ctx, d)
}

func (f *failing) RedeemCode(ctx context.Context, c grants.Code, first *grants.Family) error {
	if err := f.check("RedeemCode"); err != nil {
		return err
	}
	return f.Store.RedeemCode(ctx, c, first)
}

func (f *failing) CreateFamily(ctx context.Context, family grants.Family) error {
	if err := f.check("CreateFamily"); err != nil {
		return err
	}
	return f.Store.CreateFamily(ctx, family)
}

func (f *failing) Family(ctx context.Context, d secret.Digest) (grants.Family, error) {
	if err := f.check("Family"); err != nil {
		return grants.Family{}, err
	}
	if f.looked != nil {
		defer f.looked()
	}
	return f.Store.Family(ctx, d)
}

func (f *failing) RotateFamily(ctx context.Context, next grants.Family) error {
	if err := f.check("RotateFamily"); err != nil {
		return err
	}
	return f.Store.RotateFamily(ctx, next)
}

func (f *failing) Revoke(ctx context.Context, name string, until time.Time) error {
	if err := f.check("Revoke"); err != nil {
		return err
	}
	f.revokedUntil = until
	return f.Store.Revoke(ctx, name, until)
}

func (f *failing) RecordOnce(ctx context.Context, name string, until time.Time) error {
	if err := f.check("RecordOnce"); err != nil {
		return err
	}
	return f.Store.RecordOnce(ctx, name, until)
}

func (f *failing) Revoked(ctx context.Context, names ...string) (bool, error) {
	if err := f.check("Revoked"); err != nil {
		return false, err
	}
	return f.Store.Revoked(ctx, names...)
}

func (f *failing) User(ctx context.Context, name string) (grants.User, error) {
	if err := f.check("User"); err != nil {
		return grants.User{}, err
	}
	return f.Store.User(ctx, name)
}

func (f *failing) CreateSession(ctx context.Context, s grants.Session, most int) error {
	if err := f.check("CreateSession"); err != nil {
		return err
	}
	return f.Store.CreateSession(ctx, s, most)
}

func (f *failing) Session(ctx context.Context, key string) (grants.Session, error) {
	if err := f.check("Session"); err != nil {
		return grants.Session{}, err
	}
	return f.Store.Session(ctx, key)
}

func (f *failing) DeleteSession(ctx context.Context, key string) error {
	if err := f.check("DeleteSession"); err != nil {
		return err
	}
	return f.Store.DeleteSession(ctx, key)
}
