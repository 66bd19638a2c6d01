package proctime

import (
	"errors"
	"runtime"
	"testing"

	"oauth-server/internal/check"
)

// TestSelf grows with work.
func TestSelf(t *testing.T) {
	t.Parallel()
	before, err := Self()
	if errors.Is(err, errors.ErrUnsupported) && runtime.GOOS != "linux" {
		t.Skip("the processor time of this process is read on Linux only")
	}
	check.OK(t, err)
	for now := before; now == before; now, err = Self() {
		check.OK(t, err)
	}
}
