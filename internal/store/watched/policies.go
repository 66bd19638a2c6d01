package watched

import (
	"context"

	"oauth-server/internal/clientcfg"
)

// Policies is a watched [clientcfg.PolicyStore].
type Policies struct {
	backend  clientcfg.PolicyStore
	observer Observer
}

// NewPolicies returns the backend, watched.
func NewPolicies(b clientcfg.PolicyStore, o Observer) *Policies {
	return &Policies{backend: b, observer: o}
}

// PolicyState implements clientcfg.PolicyStore.
func (p *Policies) PolicyState(ctx context.Context) (_ clientcfg.PolicyState, err error) {
	ctx, end := p.observer.Begin(ctx, "read_policies")
	defer func() { end(Failed(err)) }()
	return p.backend.PolicyState(ctx)
}

// PolicyEntries implements clientcfg.PolicyStore.
func (p *Policies) PolicyEntries(ctx context.Context, from int64) (_ []clientcfg.PolicyEntry, err error) {
	ctx, end := p.observer.Begin(ctx, "read_policy_entries")
	defer func() { end(Failed(err)) }()
	return p.backend.PolicyEntries(ctx, from)
}

// PolicyVersion implements clientcfg.PolicyStore.
func (p *Policies) PolicyVersion(ctx context.Context) (_ clientcfg.PolicyVersion, err error) {
	ctx, end := p.observer.Begin(ctx, "read_policy_version")
	defer func() { end(Failed(err)) }()
	return p.backend.PolicyVersion(ctx)
}

// WatchPolicies implements clientcfg.PolicyWatcher if the backend does, else it returns
// [clientcfg.ErrNoWatch]. It is not measured, because it runs as long as the server.
func (p *Policies) WatchPolicies(ctx context.Context, changed func()) error {
	if w, ok := p.backend.(clientcfg.PolicyWatcher); ok {
		return w.WatchPolicies(ctx, changed)
	}
	return clientcfg.ErrNoWatch
}

// AppendPolicyEntry implements clientcfg.PolicyStore.
func (p *Policies) AppendPolicyEntry(ctx context.Context, entry clientcfg.PolicyEntry) (err error) {
	ctx, end := p.observer.Begin(ctx, "change_policies")
	defer func() { end(Failed(err)) }()
	return p.backend.AppendPolicyEntry(ctx, entry)
}
