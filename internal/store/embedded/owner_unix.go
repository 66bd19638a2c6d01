//go:build unix

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another one, if that is there: a restoration by root must not take the
// data file away from the account that the server runs as.
func keepOwner(f *os.File, of string) error {
	info, err := os.Stat(of)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid)) // not by its name, which may be another file by now
}
