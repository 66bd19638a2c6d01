// Package clientcfg has the OAuth clients and their rate limits, as snapshots in memory
// that are refreshed from a store.
//
// A [Client] is a value. A [Directory] is an immutable snapshot of all that can be read and are
// valid. [Source] keeps the newest one, so that looking a client up never reads the store. It
// follows the changes that the store shows: a change costs what it changes, however many clients
// there are.
//
// The limits follow from a trail. A [PolicyEntry] is a change that an operator made while
// the server ran, of one or several targets, and the store keeps all of them, oldest first.
// What they come to is a [PolicySet]; it overrides the configuration file. A
// [PolicySnapshot] is both together, validated, and [PolicySource] keeps the newest one. A
// change is made by [PolicySource.Change]: what it comes to is validated, its entry is
// stored under the next version, and every other instance applies it when it next asks for
// entries that are newer than its own. A snapshot is made of the one before, so this costs
// what is changed.
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
