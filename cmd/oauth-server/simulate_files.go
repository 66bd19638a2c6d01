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

	"github.com/spf13/cobra"

	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
)

const fileMode = 0o644 // of results: there is nothing secret in them

var chartExtensions = []string{".svg", ".png"}

// chartFlag adds --chart to a command of simulate.
func chartFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "chart", "", "write charts of the answer to this file, .svg or .png")
	_ = cmd.MarkFlagFilename("chart", "svg", "png")
}

// chartWritable reports what is wrong with the value of --chart.
func chartWritable(path string) error { return writable("chart", path, chartExtensions...) }

// writable reports why the file of a flag cannot be written, before long work is done for it. No path is no file.
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

// writableFiles reports which of the files of a replay cannot be written.
func (s *simulation) writableFiles() error {
	return errors.Join(writable("write", s.write), writable("report", s.report, ".html", ".htm"), chartWritable(s.chart))
}

// writeFiles writes the report and the charts.
func (s *simulation) writeFiles(r *simulate.Result) error {
	if s.report != "" {
		var page bytes.Buffer
		if err := report.Write(&page, r); err != nil {
			return err
		}
		if err := os.WriteFile(s.report, page.Bytes(), fileMode); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if s.chart != "" {
		return report.WriteCharts(s.chart, r)
	}
	return nil
}
