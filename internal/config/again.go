package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// ReadAgain returns the content of a configuration file that may have changed. It returns an error
// if the file is larger than any real configuration, or not a regular file: a pipe is empty after
// the first read, and blocks without a writer.
func ReadAgain(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return readOpen(f, maxFileSize)
}

func errIrregular(path string) error {
	return fmt.Errorf("%s is not a regular file and cannot be reloaded", path)
}

// checkRegular refuses files named by the configuration that cannot be read again.
func (c *Config) checkRegular() (es fielderr.Errors) {
	shown := *c // At allocates on the way
	for _, o := range options {
		if !strings.HasSuffix(o.Path, "_file") && o.Path != "admin_client_ca" {
			continue
		}
		file, err := strict.At(&shown, o.Path)
		if err != nil {
			continue
		}
		if info, err := os.Stat(file.String()); err == nil && !info.Mode().IsRegular() {
			es.Add(o.Path, "%v", errIrregular(file.String()))
		}
	}
	return es
}

// SetsNothing reports whether a file has no settings: it is empty, or has only comments.
func SetsNothing(text []byte) bool {
	v, problems := strict.ParseYAML("", text)
	return v == nil && problems == nil
}
