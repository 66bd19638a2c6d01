//go:build unix

package bolt

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// TestPrepareTakesTheOwner: the prepared file gets the owner of the data file or, if that is
// missing, of its directory.
func TestPrepareTakesTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	backup := filled(t)
	const account = 65534
	for _, there := range []bool{true, false} {
		dir := t.TempDir()
		data, owned := filepath.Join(dir, "data.db"), dir
		if there {
			putAt(t, data, "")
			owned = data
		}
		check.OK(t, os.Chown(owned, account, account))
		prepared, err := Prepare(t.Context(), backup, data, nil, restored)
		check.OK(t, err)
		info, err := os.Stat(prepared)
		check.OK(t, err)
		check.Equal(t, "owner", info.Sys().(*syscall.Stat_t).Uid, uint32(account))
	}
}
