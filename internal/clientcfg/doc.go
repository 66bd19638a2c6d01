// Package clientcfg holds what operators say about OAuth clients: who they are,
// what they may do, and how many tokens they may have.
//
// A [Client] is a value. A [Directory] is an immutable, validated snapshot of all of
// them; [Source] keeps the newest good one in memory, so that looking a client
// up never touches the store, and an update that does not validate never
// replaces one that did.
//
// The limits work the same way. A [PolicySet] is what operators changed while
// the server ran, on top of what the configuration file says; [PolicySnapshot] is the
// snapshot of both together, and [PolicySource] keeps the newest good one. A
// change goes through [PolicySource.Change]: it is validated as a whole, stored
// with its [AuditEntry] in one step, and seen by every other instance at its
// next look at the store's version.
//
//	source, err := clientcfg.NewPolicySource(ctx, store, clientcfg.PolicyOptions{Base: fromFile})
//	…
//	go source.Run(ctx, time.Second, logger)
//	…
//	limits := source.Snapshot().For("shop") // a pointer load and a map lookup
//
// The package knows nothing of tokens, HTTP or any particular store; it
// declares the small interfaces that it reads and writes through ([Store],
// [Registry], [PolicyStore], [AuditLog]).
package clientcfg
