package heapfloor

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestBallastTakesNoMemory: nothing touches the pages of the ballast.
func TestBallastTakesNoMemory(t *testing.T) {
	unset(t)
	before := resident(t)
	defer Choice{Floor: 1024 * mib}.Keep(100)()
	runtime.GC()
	if grown := resident(t) - before; grown > 64*mib {
		t.Errorf("a ballast of 512 MiB takes %d MiB", grown/mib)
	}
}

// resident returns the memory that the system has given to this process.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	check.OK(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	check.OK(t, err)
	return pages * int64(os.Getpagesize())
}
