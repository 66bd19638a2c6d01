// Package clientcfg holds the OAuth clients and their rate limits, as in-memory snapshots that are
// refreshed from a store.
//
// A [Client] is a value. A [Directory] is an immutable snapshot of all readable and valid clients.
// [Source] keeps the newest one, so looking up a client never reads the store. It follows the
// changes in the store. The cost of a change does not depend on the number of clients.
//
// A [PolicySet] is the limits that operators have set: records of [PoliciesTable], one for each
// target. It overrides the configuration file. A [PolicySnapshot] combines both, validated, and
// [PolicySource] keeps the newest one. [PolicySource.Change] makes a change: it validates the
// result, and appends its [Event] to the trail together with the records. Every other instance takes
// the changed records when it next follows the trail. A [Temporary] value is a record too: each
// instance uses it until its end, and then the permanent one. A snapshot shares everything unchanged
// with the previous one, so only the change costs time.
//
//	source, err := clientcfg.NewPolicySource(ctx, follower, clientcfg.PolicyOptions{Base: fromFile})
//	limits := source.Snapshot().For("shop") // a pointer load and a map lookup
//
// The package never issues tokens, does no HTTP, and depends on no particular store.
package clientcfg
