// Package registry changes clients, users and their sign-ins for operators. The handlers of the
// admin API call it, also for commands that open the store themselves: those use the same handlers
// in their own process. Each change leaves an event in the audit trail
// (docs/adr/0048-one-small-storage-contract.md).
//
//	r := registry.New(registry.Options{Store: store, Events: store, By: clientcfg.Actor{ClientID: "ops"}})
//	made, shown, err := r.CreateClient(ctx, clientcfg.Client{ID: "shop"})
//
// It never records or returns secrets, except a new secret, which it returns once.
package registry
