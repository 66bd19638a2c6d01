// Package bounded wraps the store of requests with a [lane.Lane]: each call waits there until it may go on, or is
// refused. It changes no argument and no other result.
//
//	store := bounded.New(watched.New(backend, metrics), lane.New(options), gate)
//
// It belongs around a watched store, not inside: then the time of a call does not include its wait, and a refusal is
// no failure of the store.
package bounded
