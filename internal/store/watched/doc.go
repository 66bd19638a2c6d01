// Package watched wraps a store and reports every operation to an [Observer]: its name, its beginning
// and end, and whether the store failed. It works for every backend, and changes no argument and no
// result.
//
//	store := watched.NewPolicies(backend, metrics)
//
// Commands that use a store while no server runs are not watched.
package watched
