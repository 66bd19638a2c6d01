// Package clientcfg has the OAuth clients and their rate limits, as snapshots in memory
// that are refreshed from a store.
//
// A [Client] is a value. A [Directory] is an immutable snapshot of all that can be read and are
// valid. [Source] keeps the newest one, so that looking a client up never reads the store. It
// follows the changes that the store shows: a change costs what it changes, however many clients
// there are.
//
// What operators have set of the limits is a [PolicySet]: records of [PoliciesTable], one for each target. It
// overrides the configuration file. A [PolicySnapshot] is both together, validated, and [PolicySource] keeps the
// newest one. A change is made by [PolicySource.Change]: what it comes to is validated, and its [Event] is appended to
// the trail together with the records. Every other instance applies the event when it next follows the trail. A
// snapshot shares everything unchanged with the one before, so only the change costs time.
//
//	source, err := clientcfg.NewPolicySource(ctx, follower, clientcfg.PolicyOptions{Base: fromFile})
//	…
//	loops.Repeat(background.Task{Name: "changes", Every: time.Second, Do: follower.Refresh})
//	…
//	limits := source.Snapshot().For("shop") // a pointer load and a map lookup
//
// The package never issues tokens, does no HTTP, and depends on no particular store.
package clientcfg
