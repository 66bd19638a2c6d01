// Package storetest is the conformance suite of the stores: one set of tests
// that every backend must pass, with no group that can be switched off.
//
// A backend's own test passes a [Target] to [Run]:
//
//	var target = storetest.Target{Location: newFile, Open: openFile}
//
//	func TestConformance(t *testing.T) { storetest.Run(t, target) }
//
// [RunBackend] checks [store.Backend] in the same way, with a [BackendTarget] and [BackendChild].
//
// [RunSync] is the part of it that the syncer relies on, for a store that does no more than that.
//
// The suite does not depend on the date: its records expire around [Epoch], far in the future, so that
// no TTL monitor of a database removes them while it runs.
package storetest
