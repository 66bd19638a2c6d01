// Package watched stands between the server and its store and tells an
// [Observer] of every operation: what it was, how long it took, and whether
// the store failed. It works for every backend alike and changes nothing on the way.
//
//	store := watched.New(backend, metrics)
//
// What commands do to a store while no server runs is not watched.
package watched
