//go:build race

package syncer_test

import "runtime"

// The race detector crashes where two goroutines of a synctest bubble receive from channels of
// timers that are due at the same moment, on two processors (golang/go#78156). A simulated cluster
// does that all the time. What it finds depends on the order of events, hardly on the number of
// processors.
func init() { runtime.GOMAXPROCS(1) }
