//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// A file that is not regular, and may block, is refused, whether it replaces the file or the path
// points to it.
func TestNoRegularFileIsRead(t *testing.T) {
	dir := t.TempDir()
	f := newFollowed(t, filepath.Join(dir, "x.yaml"), tenPerMinute)
	pipe := filepath.Join(dir, "pipe")
	check.OK(t, syscall.Mkfifo(pipe, 0o600))
	for _, other := range []string{pipe, dir, os.DevNull} {
		check.OK(t, os.Remove(f.path))
		check.OK(t, os.Symlink(other, f.path))
		check.ErrorSays(t, f.look(1), "is not a regular file")
		f.shows("oauth_config_reload_failed 1")
		check.OK(t, os.Remove(f.path))
		f.write(tenPerMinute)
		check.OK(t, f.look(2))
	}
	f.write("keys: { secret_file: " + pipe + " }\n")
	check.ErrorSays(t, f.look(2), "keys.secret_file: "+pipe+" is not a regular file")
	f.write(strings.Replace(tenPerMinute, "10", "30", 1))
	check.OK(t, f.look(2))
	check.Equal(t, "limit", f.limit(), int64(30))
}
