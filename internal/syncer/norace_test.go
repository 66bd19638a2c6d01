//go:build !race

package syncer_test

// What differs under the race detector; see race_test.go.
const (
	underRace       = false
	usualRuns       = 120
	usualStrictRuns = 150
)
