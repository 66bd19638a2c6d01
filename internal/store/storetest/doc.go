// Package storetest is the conformance suite of the stores. Every backend must pass all of its
// tests; no group can be switched off.
//
// A backend's own test passes a [Target] to [Run], and calls [Child] in its TestMain:
//
//	var target = storetest.Target{Location: newFile, Open: openFile}
//
//	func TestBackend(t *testing.T) { storetest.Run(t, target) }
//
// [RunCounters] is the part of the suite that the syncer relies on, for a store that offers only that.
//
// The suite does not depend on the date: its records expire around [Epoch], far in the future, so that
// no TTL monitor of a database removes them while it runs.
package storetest
