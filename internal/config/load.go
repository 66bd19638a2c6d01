package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileSize is far beyond any real configuration.
const maxFileSize = 4 << 20

// FlagValue is a flag as given on the command line; a repeated one stands
// there several times.
type FlagValue struct{ Name, Value string }

// Sources are where a configuration comes from, the weakest first.
type Sources struct {
	Base    *Config  // what holds if nothing else says otherwise; nil: Default()
	File    string   // path; empty: the one of OAUTH_CONFIG, or none
	Environ []string // as os.Environ returns it
	Flags   []FlagValue
}

// Load reads all sources onto the base and validates the outcome. Its error
// is [FieldErrors].
func Load(s Sources) (*Config, error) { return load(s, (*Config).check) }

// LoadStore is [Load] for a command that only touches a store: a server's other
// settings may be incomplete.
func LoadStore(s Sources) (*Config, error) {
	return load(s, func(c *Config) FieldErrors { return c.Store.check() })
}

func load(s Sources, check func(*Config) FieldErrors) (*Config, error) {
	fromEnv, envFile, problems := environment(s.Environ)
	if s.File == "" {
		s.File = envFile
	}
	cfg := s.base()
	usual := cfg.Store
	cfg.Store = Store{} // the usual one must not count as chosen
	origins := map[string]string{}
	if s.File != "" {
		problems = append(problems, cfg.readFile(s.File, origins)...)
	}
	fromFlags, unknown := flagSettings(s.Flags)
	problems = append(problems, unknown...)
	for _, layer := range [][]setting{fromEnv, fromFlags} {
		problems = append(problems, cfg.overlay(layer, origins)...)
	}
	if cfg.Store == (Store{}) {
		cfg.Store = usual
	}
	return cfg, append(problems, cfg.checkAll(check, problems, origins)...).err()
}

func (s Sources) base() *Config {
	if s.Base == nil {
		return Default()
	}
	c := *s.Base
	return &c
}

// checkAll adds what a check finds to what reading found, except for what
// could not even be read: its zero value would be blamed again.
func (c *Config) checkAll(check func(*Config) FieldErrors, read FieldErrors, origins map[string]string) FieldErrors {
	unread := func(path string) bool {
		return slices.ContainsFunc(read, func(p Problem) bool { return p.Path != "" && within(path, p.Path) })
	}
	var out FieldErrors
	for _, p := range check(c) {
		if !unread(p.Path) {
			p.Origin = originOf(p.Path, origins)
			out = append(out, p)
		}
	}
	return out
}

// within reports whether path is the field or lies in it.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// originOf is where the field was set, or the nearest one around it that was:
// a missing field is best shown by the line it is missing from.
func originOf(path string, origins map[string]string) string {
	for path != "" {
		if o, ok := origins[path]; ok {
			return o
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return ""
}

func (c *Config) readFile(path string, origins map[string]string) FieldErrors {
	text, err := readBounded(path)
	if err != nil {
		return FieldErrors{{Path: "--config", Message: err.Error()}}
	}
	return c.parse(path, text, origins)
}

// parse decodes one YAML document onto c.
func (c *Config) parse(file string, text []byte, origins map[string]string) FieldErrors {
	d := &decoder{file: file, origins: origins}
	parser := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := parser.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // empty: everything is as by default
	case err != nil:
		return FieldErrors{{Message: strings.TrimPrefix(err.Error(), "yaml: "), Origin: file}}
	}
	root := doc.Content[0]
	if root.Kind != yaml.ScalarNode || root.Tag != "!!null" {
		d.value(root, reflect.ValueOf(c).Elem(), "")
	}
	if err := parser.Decode(&more); !errors.Is(err, io.EOF) {
		d.fail(&more, "", "only one YAML document is allowed in the file")
	}
	return d.problems
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFileSize)
	}
	return text, errors.Join(err, f.Close())
}
