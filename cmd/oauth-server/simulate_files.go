package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		return usagef("--%s: %s does not end with %s", flag, path, strings.Join(extensions, " or "))
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
	type named struct {
		as   string
		info os.FileInfo
	}
	var taken []named
	for _, path := range slices.Concat(logs, s.policies) {
		if info, err := os.Stat(path); err == nil {
			taken = append(taken, named{"it is read", info})
		}
	}
	for _, out := range []struct{ flag, path string }{{"--write", s.write}, {"--report", s.report}} {
		info, err := os.Stat(out.path)
		if err != nil {
			continue // a new file
		}
		for _, other := range taken {
			if os.SameFile(info, other.info) {
				return usagef("%s: %s would be overwritten, and %s: name another file", out.flag, out.path, other.as)
			}
		}
		taken = append(taken, named{"is that of " + out.flag, info})
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
	if err := replaceFile(s.report, page.Bytes()); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// replaceFile writes a file atomically. On an error, the old file stays unchanged. It writes
// directly to anything that is not a regular file, such as a pipe or a link.
func replaceFile(path string, content []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, content, fileMode)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".oauth-server-*")
	if errors.Is(err, fs.ErrPermission) { // the directory is read-only; the file was checked to be writable
		return os.WriteFile(path, content, fileMode)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(fileMode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
