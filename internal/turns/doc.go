// Package turns holds requests over a limit until it is their turn.
//
// [Lines.Take] is [ratelimit.Counters.Await] for a policy with a max_wait. A request over the limit joins the line
// of its key if a place is free and its turn comes within max_wait, which [ratelimit.Forecast] knows; otherwise
// it is denied at once, with the time at which its turn would have come as Retry-After. A line is first come, first
// served: while anybody waits, a newcomer is not decided before them.
//
// A line has one timer, for the millisecond at which its first request passes, and runs no goroutine between: a
// request that waits is a goroutine of its caller and less than a kilobyte. The timer fires at least every second, to
// find what has changed: the policy, or the counts of other processes. Whose turn no longer comes in time is then
// denied.
//
// # One line, worked through
//
// A limit of 2 per second, in ten frames, with max_wait 1s. At 12:00:00.030 five requests come. Two pass. The
// frame of these, which began at 12:00:00.000, shrinks from 12:00:01.000 on: one more fits at 12:00:01.001, and a
// second one at 12:00:01.051. So the third request waits for 971 ms, and the fourth is denied, with Retry-After 2, because
// its turn would come after 1,021 ms. If the third leaves at 12:00:00.500, one that comes then waits in its place,
// for 501 ms.
//
// In dry-run nobody is held: the request passes, and its place in the line counts it at its turn, as if it had waited.
// So the counts are those that enforcing would have.
//
// The package reads no clock but the one it is given, and does no I/O.
package turns
