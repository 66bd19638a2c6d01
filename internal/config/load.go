package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/strict"
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
// is [fielderr.Errors].
func Load(s Sources) (*Config, error) { return load(s, (*Config).check) }

// LoadStore is [Load] for a command that only touches a store: a server's other
// settings may be incomplete.
func LoadStore(s Sources) (*Config, error) {
	return load(s, func(c *Config) fielderr.Errors { return c.Store.check() })
}

func load(s Sources, check func(*Config) fielderr.Errors) (*Config, error) {
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
	found := check(cfg)
	for i := range found {
		found[i].Origin = originOf(found[i].Path, origins)
	}
	problems.AddUnreported(found)
	return cfg, problems.Err()
}

func (s Sources) base() *Config {
	if s.Base == nil {
		return Default()
	}
	c := *s.Base
	return &c
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

func (c *Config) readFile(path string, origins map[string]string) fielderr.Errors {
	text, err := readBounded(path)
	if err != nil {
		return fielderr.Errors{{Path: "--config", Message: err.Error()}}
	}
	return c.parse(path, text, origins)
}

// parse decodes one YAML document onto c.
func (c *Config) parse(file string, text []byte, origins map[string]string) fielderr.Errors {
	v, problems := strict.ParseYAML(file, text)
	if v == nil {
		return problems
	}
	return append(v.Decode(c, origins), problems...)
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
