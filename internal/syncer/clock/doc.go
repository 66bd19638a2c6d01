// Package clock keeps process time, which is the only time used for the shared counters.
//
// Process time is the time of the store when the process started, plus the monotonic time that has
// passed since. It never runs backwards. Every few seconds the process compares three clocks:
// process time, the wall clock of the machine and the clock of the store.
//
//	| agree             | then                                                                       |
//	| process and store | process time is slewed to the store's, at most 5 % fast or slow            |
//	| process and wall  | the store is not followed                                                  |
//	| wall and store    | the machine was suspended: process time steps forwards, or is slewed back  |
//	| none              | the time that most clocks agree on, including the clocks of other processes|
//
// Two clocks agree if they differ by at most [Tolerance]. So setting the wall clock, or a store
// that suddenly returns a wrong time, changes nothing.
//
// [Clock.Uncertainty] bounds the difference between process time and the store's time, for strict
// limits. It includes half the round trip of the most exact reading, the part that is not slewed
// yet, the drift of clocks, and the moves of the wall clock since then, because the wall clock may
// have been set or the machine suspended. After a suspension it is too small until the clocks are
// compared again, with or without the store's clock.
//
// # One resumed machine, worked through
//
// A virtual machine is suspended for ten minutes at 12:00:00. Monotonic time stands still. So a
// second after the machine has resumed, process time is 12:00:01, while wall clock and store both
// show 12:10:01. They agree against process time, which steps to 12:10:01. The counts from before
// are then ten minutes old, which is their real age.
//
// The package does no I/O: callers pass in the readings of the store's clock.
package clock
