// Package storetest is the conformance suite of the stores: one set of tests
// that every backend must pass, with no group that can be switched off.
//
// A backend's own test hands over a [Target] and lets [Run] do the rest. The
// suite also kills a real process in the middle of its writes, so the backend's
// TestMain calls [Child] first:
//
//	var target = storetest.Target{Location: newFile, Open: openFile}
//
//	func TestMain(m *testing.M) {
//		storetest.Child(target.Open) // returns at once, unless this is the child
//		os.Exit(m.Run())
//	}
//
//	func TestConformance(t *testing.T) { storetest.Run(t, target) }
//
// [RunSync] is the part of it that the syncer relies on, for a store that does
// no more than that.
//
// The suite never waits for the wall clock: its records live around [Epoch],
// far in the future, so that no TTL monitor removes them behind its back.
package storetest
