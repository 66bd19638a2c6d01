package events

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
)

// A file is open only while its requests come, so that a year of rotated logs can be read at once.
func TestFewFilesAreOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for day := range 30 {
		name := filepath.Join(dir, fmt.Sprint(day))
		names = append([]string{name}, names...)
		var text []byte
		for i := range 3 {
			text = fmt.Appendf(text, "%d,c\n", 86400*day+i)
		}
		check.OK(t, os.WriteFile(name, append([]byte("time,client\n"), text...), 0o600))
	}
	r, err := Open(names, Options{})
	check.OK(t, err)
	defer r.Close()
	var q traffic.Request
	n := 0
	for r.Next(&q) {
		n++
		check.Equal(t, "open files", len(r.open), 1)
	}
	check.Equal(t, "requests", n, 90)
}
