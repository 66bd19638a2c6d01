// Package registry changes clients, users and their sign-ins for operators. It serves the admin API
// and the commands that open the store. Both have the same effects, make the same checks, and leave
// the same events in the audit trail (docs/adr/0048-one-small-storage-contract.md).
//
//	r := registry.New(registry.Options{Store: store, Events: store, By: clientcfg.Actor{ClientID: "ops"}})
//	made, shown, err := r.CreateClient(ctx, clientcfg.Client{ID: "shop"})
//
// It never records or returns secrets, except a new secret, which it returns once.
package registry
