// Package registry changes clients, users and what they are signed in with, for operators: behind the
// admin API and behind the commands that open the store. Both do the same, check the same, and leave
// the same events in the audit trail (docs/adr/0048-one-small-storage-contract.md).
//
//	r := registry.New(registry.Options{Store: store, Events: store, By: clientcfg.Actor{ClientID: "ops"}})
//	made, shown, err := r.CreateClient(ctx, clientcfg.Client{ID: "shop"})
//
// Nothing that it records or returns is secret, except a new secret, which it returns once.
package registry
