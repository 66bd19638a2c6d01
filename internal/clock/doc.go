// Package clock keeps process time: the one time that everything which touches the shared counters
// uses.
//
// Process time is the time of the store when the process started, plus the monotonic time that has
// passed since. It never runs backwards. Every few seconds three clocks are compared: process time,
// the wall clock of the machine and the clock of the store.
//
//	| agree             | then                                                                       |
//	| process and store | process time is slewed to the store's, at most 5 % fast or slow            |
//	| process and wall  | the store is not followed                                                  |
//	| wall and store    | the machine was suspended: process time steps forwards, or is slewed back  |
//	| none              | the time that most clocks agree on, those of the other processes included  |
//
// Two clocks agree if they differ by at most [Tolerance]. So a wall clock that is set, or a store
// that suddenly returns a wrong time, changes nothing.
//
// [Clock.Uncertainty] bounds how far process time may be off the store's, for strict limits: half of
// the round trip of the most exact reading, what is not slewed yet, what clocks drift by, and what the
// wall clock has moved by since: it may have been set, or the machine was suspended. It does not cover
// a machine that was suspended until the clocks are compared again, with or without the store's.
//
// # One resumed machine, worked through
//
// A virtual machine is suspended for ten minutes at 12:00:00. Monotonic time stands still
// meanwhile, so a second after the machine has resumed process time is 12:00:01, and wall clock and
// store are both at 12:10:01. They agree against process time, which steps to 12:10:01: the counts
// from before are then ten minutes old, as they really are.
//
// The package does no I/O: readings of the store's clock are passed in.
package clock
