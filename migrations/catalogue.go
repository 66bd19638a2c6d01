package migrations

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

//go:embed *.json
var files embed.FS

// Migration is one numbered step.
type Migration struct {
	Number   int    // 1, 2, 3…
	Name     string // of the file, without number and extension
	About    string
	Checksum string // SHA-256 of the file, hexadecimal
	Commands []Command
}

// Command is one database command of a migration.
type Command struct {
	About string
	Run   bson.D
	// Step is set, instead of Run, for what no database command can do: the name of what [Up] does.
	Step string
	// Optional is set if the database works without it on a server that does not implement it: for
	// validators, and not for TTL indexes (see doc.go).
	Optional bool
}

// String returns the command as it can be pasted into db.runCommand, and of a step a comment.
func (c Command) String() string {
	if c.Step != "" {
		return "// " + c.Step + ", which oauth-server migrate up does itself"
	}
	text, err := bson.MarshalExtJSON(c.Run, false, false)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// String returns the number and name of the migration, as in "0001_ratelimits".
func (m Migration) String() string { return fmt.Sprintf("%04d_%s", m.Number, m.Name) }

// All returns the migrations of this release, in their order.
func All() ([]Migration, error) { return load(files) }

var fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.json$`)

// load reads the migrations of a file system. Their numbers must count up from 1 without a gap.
func load(fsys fs.FS) ([]Migration, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var list []Migration
	for _, e := range entries {
		m, err := read(fsys, e.Name())
		if err != nil {
			return nil, fmt.Errorf("migrations: %s: %w", e.Name(), err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Migration) int { return cmp.Compare(a.Number, b.Number) })
	for i, m := range list {
		if m.Number != i+1 {
			return nil, fmt.Errorf("migrations: %s stands where number %d is due", m, i+1)
		}
	}
	return list, nil
}

func read(fsys fs.FS, name string) (m Migration, err error) {
	parts := fileName.FindStringSubmatch(name)
	if parts == nil {
		return m, errors.New("the name is not like 0001_name.json")
	}
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return m, err
	}
	sum := sha256.Sum256(content)
	m.Name, m.Checksum = parts[2], hex.EncodeToString(sum[:])
	if m.Number, err = strconv.Atoi(parts[1]); err != nil {
		return m, err
	}
	return m, m.parse(content)
}

func (m *Migration) parse(content []byte) error {
	var file struct {
		About    string `json:"about"`
		Commands []struct {
			About    string          `json:"about"`
			Optional bool            `json:"optional"`
			Run      json.RawMessage `json:"run"`
			Step     string          `json:"step"`
		} `json:"commands"`
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return err
	}
	m.About = file.About
	for i, c := range file.Commands {
		var run bson.D
		if c.Step == "" {
			if err := bson.UnmarshalExtJSON(c.Run, false, &run); err != nil {
				return fmt.Errorf("commands[%d]: %w", i, err)
			}
		}
		if c.About == "" || (len(run) == 0) == (steps[c.Step] == nil) {
			return fmt.Errorf("commands[%d]: about and run are needed, or a step that is known", i)
		}
		m.Commands = append(m.Commands, Command{About: c.About, Run: run, Step: c.Step, Optional: c.Optional})
	}
	return nil
}
