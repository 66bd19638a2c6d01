package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// maxFileSize is far above any real configuration, in bytes.
const maxFileSize = 4 << 20

// FlagValue is a flag as given on the command line. A repeated flag has one FlagValue per
// occurrence.
type FlagValue struct{ Name, Value string }

// Sources are the sources of a configuration, the weakest first.
type Sources struct {
	Base    *Config  // what the others override; nil: Default()
	File    string   // path; empty: the value of OAUTH_CONFIG, if set
	Text    []byte   // content of the file, if it is read again; see [ReadAgain]
	Environ []string // as os.Environ returns it
	Flags   []FlagValue
}

// Load reads all sources onto the base and validates the result. Its error is
// [fielderr.Errors].
func Load(s Sources) (*Config, error) {
	return load(s, func(c *Config) fielderr.Errors { return append(c.Store.MongoDB.readURI(), c.check()...) })
}

// LoadStore is [Load] for a command that uses only the store. It does not validate the other
// settings.
func LoadStore(s Sources) (*Config, error) {
	return load(s, (*Config).readStore)
}

// LoadAddresses is [Load] for a command that calls a running server. It validates only the
// addresses of that server, and reads no secrets.
func LoadAddresses(s Sources) (*Config, error) {
	return load(s, func(c *Config) (es fielderr.Errors) {
		c.checkListen(&es)
		return es
	})
}

// LoadKeys is [LoadStore] for a command that also uses the signing keys.
func LoadKeys(s Sources) (*Config, error) {
	return load(s, func(c *Config) fielderr.Errors {
		es := c.readStore()
		c.Keys.check(&es)
		c.checkOptions(&es, "tokens.")
		return es
	})
}

// readStore reads the URI of the store from its file and validates the store.
func (c *Config) readStore() fielderr.Errors {
	return append(c.Store.MongoDB.readURI(), c.Store.check()...)
}

func load(s Sources, check func(*Config) fielderr.Errors) (*Config, error) {
	fromEnv, envFile, problems := environment(s.Environ)
	if s.File == "" {
		s.File = envFile
	}
	cfg := s.base()
	preset := cfg.Store
	cfg.Store = Store{} // the default must not count as configured
	origins := map[string]string{}
	switch {
	case s.Text != nil:
		problems = append(problems, cfg.parse(s.File, s.Text, origins)...)
	case s.File != "":
		problems = append(problems, cfg.readFile(s.File, origins)...)
	}
	fromFlags, unknown := flagSettings(s.Flags)
	problems = append(problems, unknown...)
	for _, layer := range [][]setting{fromEnv, fromFlags} {
		problems = append(problems, cfg.overlay(layer, origins)...)
	}
	if cfg.Store == (Store{}) {
		cfg.Store = preset
	}
	var found fielderr.Errors
	if s.Text != nil {
		found = cfg.checkRegular()
	}
	if found == nil {
		found = check(cfg)
	}
	for i := range found {
		found[i].Origin = fielderr.Nearest(origins, found[i].Path) // of a missing field, the mapping that lacks it
	}
	problems.AddUnreported(found)
	return cfg, problems.Err()
}

// Path returns the path of the file; empty without a file.
func (s Sources) Path() string {
	if s.File != "" {
		return s.File
	}
	_, file, _ := environment(s.Environ)
	return file
}

func (s Sources) base() *Config {
	if s.Base == nil {
		return Default()
	}
	c := *s.Base
	return &c
}

// readURI reads the URI from its file.
func (m *MongoDB) readURI() (es fielderr.Errors) {
	if m != nil {
		m.URI = strings.TrimSpace(valueOrFile(&es, "store.mongodb.uri", m.URI, m.URIFile))
	}
	return es
}

func (c *Config) readFile(path string, origins map[string]string) fielderr.Errors {
	text, err := readBounded(path, maxFileSize)
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

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	return readOpen(f, most)
}

// readOpen reads a file and closes it.
func readOpen(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", f.Name(), most)
	}
	return text, errors.Join(err, f.Close())
}
