package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// Three instances on one database: a file that is applied at one, undone at another and temporary at the third
// is in force on all; and files that are applied at the same time are applied whole or not at all.
func TestLimitsFileOnEveryInstance(t *testing.T) {
	c := newOperatedCluster(t, 3)
	file := filepath.Join(t.TempDir(), "limits.yaml")
	check.OK(t, os.WriteFile(file, []byte("policies:\n  shop: {client: [{requests: 1, window: 1h}]}\n"), 0o600))
	everywhere := func(what string, status int) {
		t.Helper()
		for _, o := range c.instances {
			check.Eventually(t, what, func() bool { return c.status(t, o) == status })
		}
	}
	c.limits(t, c.instances[0], "apply", "-f", file, "--yes")
	first := versionAt(t, c, 0)
	everywhere("the file is in force", http.StatusTooManyRequests)
	c.limits(t, c.instances[1], "undo", strconv.FormatInt(first, 10), "--yes")
	everywhere("it is undone", http.StatusOK)
	check.Equal(t, "version at the third, at once", versionAt(t, c, 2), first+1)
	c.limits(t, c.instances[2], "apply", "-f", file, "--for", "1h", "--yes")
	everywhere("it is in force for a while", http.StatusTooManyRequests)
	for i, o := range c.instances {
		check.Eventually(t, "the end is shown", func() bool {
			stdout, _, _ := run(t, "", "limits", "list", "--server", o.operators, "--token", c.token)
			return strings.Contains(stdout, "changed here, until ")
		})
		check.Equal(t, "version", versionAt(t, c, i), first+2)
	}

	var applied, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 6 {
		text := fmt.Sprintf("settings: {note: \"%d\"}\npolicies:\n  shop: {note: \"%d\"}\n  ops: {note: \"%d\"}\n", i, i, i)
		all.Go(func() {
			_, stderr, status := run(t, text, "limits", "apply", "-f", "-", "--yes", "--server", c.instances[i%3].operators, "--token", c.token)
			mu.Lock()
			defer mu.Unlock()
			if status == command.ExitOK {
				applied++
			} else if refused++; !strings.Contains(stderr, "was changed by ops") {
				t.Errorf("status %d: %s", status, stderr)
			}
		})
	}
	all.Wait()
	check.Equal(t, "version: what was applied is there, and no more", versionAt(t, c, 0), first+2+int64(applied))
	stdout, _, _ := run(t, "", "limits", "export", "--server", c.instances[0].operators, "--token", c.token)
	_, note, _ := strings.Cut(stdout, "note: ")
	note, _, _ = strings.Cut(note, "\n")
	check.Equal(t, "parts of one file, of "+stdout, strings.Count(stdout, "note: "+note), 3)
	check.Equal(t, "applied or refused", applied+refused, 6)
}

// versionAt is the version of the policies that an instance has.
func versionAt(t *testing.T, c *operatedCluster, i int) int64 {
	t.Helper()
	var set struct{ Version int64 }
	runJSON(t, &set, "", "limits", "export", "--server", c.instances[i].operators, "--token", c.token)
	return set.Version
}
