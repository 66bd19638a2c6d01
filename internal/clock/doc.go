// Package clock keeps the time of one process: the time that everything which
// touches the shared counters goes by.
//
// Process time is the time of the store when the process started, plus the
// monotonic time that has passed since. It never runs backwards. Every few
// seconds three clocks are compared: process time, the wall clock of the machine
// and the clock of the store.
//
//	| process and store agree | the difference is slewed, at most 5 % fast or slow |
//	| process and wall agree  | the store stands alone and is not followed         |
//	| wall and store agree    | the process was suspended: it steps forwards, or slows down |
//	| none agree              | the other processes decide, if a majority of all clocks agrees |
//
// Two clocks agree if they differ by at most [Tolerance]. So a wall clock that is
// set, and a store that suddenly answers a wrong time, change nothing.
//
// # One resumed machine, worked through
//
// A virtual machine is suspended for ten minutes at 12:00:00. Monotonic time
// stands still meanwhile, so process time is 12:00:01 a second after it resumes,
// when wall clock and store both say 12:10:01. They agree against it: process
// time steps to 12:10:01, and the counts of the last ten minutes are as old as
// they really are.
//
// The package does no I/O: the readings of the store's clock are passed in.
package clock
