// Package heapfloor lets the heap of a process grow to a floor before a garbage
// collection is due.
//
// Go starts a collection when the heap has doubled since the last one (GOGC=100), but not below 4
// MiB. Take a server with a few megabytes of live objects that makes 100 MiB of garbage a second.
// It collects dozens of times a second, and each collection takes a quarter of the processors while
// it lasts. With one processor, requests wait. Saving so little memory is not worth that. With a
// floor of 64 MiB the server collects once or twice a second. If more than half the floor is live,
// the heap is collected as without a floor.
//
//	keeper := heapfloor.Choose(os.LookupEnv, os.DirFS("/"), false).Keep()
//	defer keeper.Stop()
//
// # How
//
// After each collection GOGC is set so that the next goal is the floor. For live objects of 10 MiB
// and a floor of 64 MiB it is 540: they may grow by 54 MiB. From 32 MiB on it is 100, or the
// argument of [Choice.KeepAbove].
//
// A GOGC that is right for 10 MiB is wrong for 60 MiB, which the next collection may find: the heap
// could grow to 384 MiB until GOGC is set again, which takes a while on a busy machine. So while
// GOGC is above 100, a memory limit keeps the heap from growing beyond twice the floor.
//
// Checking a password leaves 19 MiB of garbage, and a collection during the check finds them live.
// With a floor of 64 MiB every second password would start a collection, 10 to 15 a second in a
// flood of sign-ins. So a process that hashes passwords has a floor of 192 MiB.
//
// The package allocates no ballast, which would show up as heap in use. It does not change the
// collector if the environment sets GOGC, and never raises a memory limit from the environment
// (GOMEMLIMIT).
package heapfloor
