//go:build !race

package syncer_test

// These values differ under the race detector; see race_test.go.
const (
	underRace       = false
	usualRuns       = 120
	usualStrictRuns = 150
	usualFrameRuns  = 10
)
