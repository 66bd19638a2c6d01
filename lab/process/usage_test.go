package process_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/process"
)

// read returns a processor time.
func read(t *testing.T, by process.Reader) time.Duration {
	t.Helper()
	used, err := by()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// TestWhole: it is what the system says of this process, in coarser units.
func TestWhole(t *testing.T) {
	for whole := time.Duration(0); whole < 5*process.Hundredth; {
		whole = read(t, process.Whole(os.Getpid()))
		if exact := read(t, proctime.Self); whole > exact+process.Hundredth {
			t.Fatalf("%v in /proc, %v by the system", whole, exact)
		}
	}
}

// TestEndedChildren: what a child has used counts as soon as that has ended.
func TestEndedChildren(t *testing.T) {
	ended := func() (time.Duration, error) { return process.EndedChildren(os.Getpid()) }
	before := read(t, ended)
	if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	if used := read(t, ended) - before; used < process.Hundredth {
		t.Errorf("a child that has worked used %v", used)
	}
}
