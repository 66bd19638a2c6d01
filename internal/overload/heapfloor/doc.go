// Package heapfloor lets the heap of a process grow to a floor before a garbage
// collection is due.
//
// Go starts a collection when the heap has doubled since the last one (GOGC=100), but not below 4
// MiB. Take a server with a few megabytes of live objects that makes 100 MiB of garbage a second.
// It collects dozens of times a second, and each collection takes a quarter of the processors while
// it lasts. With one processor, requests wait. Saving so little memory is not worth that. With a
// floor of 64 MiB the server collects once or twice a second.
//
//	defer heapfloor.Choose(os.LookupEnv, os.DirFS("/"), false).Keep(100)()
//
// # How
//
// A ballast, an object that nothing ever writes to, counts as live. With one of 32 MiB the heap has
// doubled at 64 MiB or, with 10 MiB of other live objects, at 84. Linux gives it no memory, because
// its pages are never touched, but it does show up as heap in use.
//
// Checking a password leaves 19 MiB of garbage, and a collection during the check finds them live.
// With a floor of 64 MiB every second password would start a collection, 10 to 15 a second in a
// flood of sign-ins. So a process that hashes passwords has a floor of 192 MiB.
//
// The package does not change the collector if the environment sets GOGC. A memory limit from the
// environment (GOMEMLIMIT) applies to all but the ballast.
package heapfloor
