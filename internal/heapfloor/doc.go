// Package heapfloor lets the heap of a process grow to a floor before a garbage
// collection is due.
//
// A collection is due when the heap has doubled since the last (GOGC=100), but not
// below 4 MiB. A server with few megabytes of live objects that makes 100 MiB of
// garbage a second collects dozens of times a second, and each collection takes a
// quarter of the processors while it lasts: with one processor, requests wait. Memory
// that small is not worth saving. With a floor of 64 MiB it collects once or twice
// a second; a heap of more than half the floor is collected as without it.
//
//	keeper := heapfloor.Choose(os.LookupEnv, os.DirFS("/")).Keep()
//	defer keeper.Stop()
//
// # How
//
// After each collection GOGC is set to what makes the floor the next goal. For live
// objects of 10 MiB and a floor of 64 MiB that is 540: they may grow by 54 MiB. From
// 32 MiB on it is 100, or what [Choice.KeepAbove] was called with.
//
// A GOGC that is right for 10 MiB is wrong for 60, which the next collection may find:
// the heap would be allowed to grow to 384 MiB until GOGC is set anew, which takes a while
// on a busy machine. So while GOGC is above 100, a memory limit keeps the heap from
// growing beyond twice the floor.
//
// Checking a password leaves 19 MiB of garbage, and a collection at that time finds them
// live. Below a floor of 64 MiB every second password would start a collection, 10 to 15
// a second. So on few processors, while passwords are checked often, more than eight in
// two seconds, the floor is a higher one and GOMAXPROCS is raised by one ([Keeper.Raise]).
// The memory limit is then one lower floor above the raised one.
//
// The package allocates no ballast, which would show up as heap in use. It leaves the
// collector alone where the environment sets GOGC, and never raises a memory limit that
// is set there (GOMEMLIMIT).
package heapfloor
