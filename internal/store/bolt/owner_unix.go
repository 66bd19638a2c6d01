//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a file the owner of another one or, if that is not there, of its directory: a restoration by
// root must not take the data file away from the account that the server runs as.
func keepOwner(f *os.File, of string) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		if os.Geteuid() != 0 { // who may write to a directory is not always its owner
			return nil
		}
		info, err = os.Stat(filepath.Dir(of))
	}
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid)) // not by name: another file may have it
}
