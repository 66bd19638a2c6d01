package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"oauth-server/lab/page"
)

// The files that are written, below the root.
const (
	pageFile = "docs/scale.md"
	oldFile  = "docs/scale-old.json"
)

// figures holds the measurements of one release, by names such as clients/mongodb/1000/start.
type figures struct {
	Commit   string             `json:"commit,omitempty"`
	Measured string             `json:"measured,omitempty"` // when and on what
	Values   map[string]float64 `json:"values"`
	Notes    map[string]string  `json:"notes"` // why there are no values below a name
}

func newFigures() *figures {
	return &figures{Values: map[string]float64{}, Notes: map[string]string{}}
}

// readFigures reads a file that [figures.write] wrote. Without such a file it returns empty figures.
func readFigures(file string) (*figures, error) {
	f := newFigures()
	raw, err := os.ReadFile(file) //nolint:gosec // G304: a file of the project
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, f); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return f, nil
}

func (f *figures) write(file string) error {
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return page.Replace(file, append(raw, '\n'))
}

// replace takes the figures of one part from another.
func (f *figures) replace(part string, by *figures) {
	inPart := func(name string) bool { return strings.HasPrefix(name, part+"/") }
	maps.DeleteFunc(f.Values, func(name string, _ float64) bool { return inPart(name) })
	maps.DeleteFunc(f.Notes, func(name, _ string) bool { return inPart(name) })
	maps.Copy(f.Values, by.Values)
	maps.Copy(f.Notes, by.Notes)
}

func (f *figures) set(name string, value float64) { f.Values[name] = value }

// note says why there is no value below a name.
func (f *figures) note(name, why string) { f.Notes[name] = why }
