package simulate

import (
	"testing"

	"oauth-server/internal/check"
)

// TestSplitLimits: a limit begins at each REQUESTS/WINDOW; the rest are its options.
func TestSplitLimits(t *testing.T) {
	got := splitLimits([]string{"5/1s,name=a/b,frames=2,10/60s,strict", "7/1h"})
	check.Equal(t, "limits", got, []string{"5/1s,name=a/b,frames=2", "10/60s,strict", "7/1h"})
}
