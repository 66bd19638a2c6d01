//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a file the owner of another file or, if that is missing, of its directory. A
// restoration by root must not take the data file away from the account that the server runs as.
func keepOwner(f *os.File, of string) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		if os.Geteuid() != 0 { // a user who may write to a directory is not always its owner
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
	return f.Chown(int(st.Uid), int(st.Gid)) // by file descriptor: the name may lead to another file
}
