// Package clientcfg holds what operators say about OAuth clients: who they are
// and what they may do.
//
// A [Client] is a value. A [Directory] is an immutable, validated snapshot of all of
// them; [Source] keeps the newest good one in memory, so that looking a client
// up never touches the store, and an update that does not validate never
// replaces one that did.
//
// The package knows nothing of tokens, HTTP or any particular store; it
// declares the small [Store] interface that it reads through.
package clientcfg
