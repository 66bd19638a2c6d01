// Package clientcfg has the OAuth clients and their rate limits, as snapshots in memory
// that are refreshed from a store.
//
// A [Client] is a value. A [Directory] is an immutable snapshot of all that can be read and are
// valid. [Source] keeps the newest one, so that looking a client up never reads the store. It
// follows the changes that the store shows: a change costs what it changes, however many clients
// there are.
//
// The limits work the same way. A [PolicySet] is what operators changed while the server
// ran, and is what the store keeps; it overrides the configuration file. A
// [PolicySnapshot] is both together, validated, and [PolicySource] keeps the newest one. A
// change is made by [PolicySource.Change]: it is validated as a whole, stored with its
// [AuditEntry] in one step, and read by every other instance when it next compares
// versions.
//
//	source, err := clientcfg.NewPolicySource(ctx, store, clientcfg.PolicyOptions{Base: fromFile})
//	…
//	loops.Repeat(background.Task{Name: "policies", Every: time.Second, Do: source.Refresh})
//	…
//	limits := source.Snapshot().For("shop") // a pointer load and a map lookup
//
// The package never issues tokens, does no HTTP, and depends on no particular store: it
// declares the interfaces that it needs ([Store], [Registry], [PolicyStore], [AuditLog]).
package clientcfg
