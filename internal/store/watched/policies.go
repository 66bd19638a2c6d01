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

// PolicySet implements clientcfg.PolicyStore.
func (p *Policies) PolicySet(ctx context.Context) (_ clientcfg.PolicySet, err error) {
	ctx, end := p.observer.Begin(ctx, "read_policies")
	defer func() { end(failed(err)) }()
	return p.backend.PolicySet(ctx)
}

// PolicyVersion implements clientcfg.PolicyStore.
func (p *Policies) PolicyVersion(ctx context.Context) (_ int64, err error) {
	ctx, end := p.observer.Begin(ctx, "read_policy_version")
	defer func() { end(failed(err)) }()
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

// ReplacePolicySet implements clientcfg.PolicyStore.
func (p *Policies) ReplacePolicySet(ctx context.Context, next clientcfg.PolicySet, entry clientcfg.AuditEntry) (err error) {
	ctx, end := p.observer.Begin(ctx, "replace_policies")
	defer func() { end(failed(err)) }()
	return p.backend.ReplacePolicySet(ctx, next, entry)
}
