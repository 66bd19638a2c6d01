package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
)

const fileMode = 0o644 // of results, which contain no secrets

// writable reports why a flag's output file cannot be written. It runs before any long work. An
// empty path is valid.
func writable(flag, path string, extensions ...string) error {
	if path == "" {
		return nil
	}
	if len(extensions) > 0 && !slices.Contains(extensions, filepath.Ext(path)) {
		return command.Usagef("--%s: %s does not end with %s", flag, path, strings.Join(extensions, " or "))
	}
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, fileMode) //nolint:gosec // G304: of the caller
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	err = f.Close()
	if isNew {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// outputsApart reports output files that would overwrite an input or each other.
func (s *simulation) outputsApart(logs []string) error {
	taken := map[string]string{} // what paths are, by path
	for _, path := range slices.Concat(logs, s.policies) {
		taken[path] = "it is an input"
	}
	for _, out := range []struct{ flag, path string }{{"--write", s.write}, {"--report", s.report}} {
		for path, is := range taken {
			if command.SameFile(path, out.path) {
				return command.Usagef("%s: refusing to overwrite %s: %s; name another file", out.flag, out.path, is)
			}
		}
		taken[out.path] = "it is also the file of " + out.flag
	}
	return nil
}

// writableFiles reports the output files of a replay that cannot be written.
func (s *simulation) writableFiles() error {
	return errors.Join(writable("write", s.write), writable("report", s.report, ".html", ".htm"))
}

// writeReport writes the report.
func (s *simulation) writeReport(r *simulate.Result) error {
	if s.report == "" {
		return nil
	}
	var page bytes.Buffer
	if err := report.Write(&page, r); err != nil {
		return err
	}
	if err := os.WriteFile(s.report, page.Bytes(), fileMode); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}
