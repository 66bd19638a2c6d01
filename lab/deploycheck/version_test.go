package deploycheck

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"oauth-server/internal/check"
)

func inGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "safe.directory=*"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// removeIgnored removes what Docker would not send.
func removeIgnored(t *testing.T, dir string) {
	t.Helper()
	ignored := dockerIgnore(t)
	var excluded []string
	check.OK(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		check.OK(t, err)
		relative, err := filepath.Rel(dir, path)
		check.OK(t, err)
		is, err := ignored.MatchesOrParentMatches(relative)
		check.OK(t, err)
		if is {
			excluded = append(excluded, path)
		}
		return nil
	}))
	for _, path := range excluded {
		check.OK(t, os.RemoveAll(path))
	}
}

// dockerIgnore returns the patterns of .dockerignore.
func dockerIgnore(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	file, err := os.Open(filepath.Join(root, ".dockerignore"))
	check.OK(t, err)
	defer func() { _ = file.Close() }()
	patterns, err := ignorefile.ReadAll(file)
	check.OK(t, err)
	ignored, err := patternmatcher.New(patterns)
	check.OK(t, err)
	return ignored
}

// TestImageGetsNoSecrets: what a server in the tree leaves there is not sent.
func TestImageGetsNoSecrets(t *testing.T) {
	ignored := dockerIgnore(t)
	for _, path := range []string{
		"oauth-server.db", "oauth-server.db.admin", "oauth-server.db.restore-1", "oauth-server.db.before-restore-1", "deploy/demo/a.db", "data/a.db.admin",
	} {
		is, err := ignored.MatchesOrParentMatches(path)
		check.OK(t, err)
		check.Equal(t, path+" is excluded", is, true)
	}
}
