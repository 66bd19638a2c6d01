package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// FuzzParse parses arbitrary files. No file may crash the parser, and every accepted configuration
// must be the same after it is printed and read back.
//
// Attack (input): Hostile configuration files. Strict parsers report every problem and cannot
// crash. Also strict.FuzzJSON, strict.FuzzYAML.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/bad/*.yaml")
	check.OK(f, err)
	for _, file := range append(seeds, "testdata/complete.yaml") {
		text, err := os.ReadFile(file)
		check.OK(f, err)
		f.Add(text)
	}
	f.Add([]byte("# nothing\n"))
	f.Add([]byte("&a listen: *a"))
	f.Add([]byte("rate_limit: &r { default: *r }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := Default()
		if len(cfg.parse("fuzz.yaml", text, map[string]string{})) > 0 || cfg.Validate() != nil {
			return
		}
		first := printed(t, cfg)
		again := &Config{}
		if ps := again.parse("again.yaml", []byte(first), map[string]string{}); len(ps) > 0 {
			t.Fatalf("%v in\n%s", ps, first)
		}
		if second := printed(t, again); first != second {
			t.Errorf("printed\n%s\nread back as\n%s", first, second)
		}
	})
}

func printed(t *testing.T, c *Config) string {
	t.Helper()
	var out strings.Builder
	check.OK(t, c.WriteYAML(&out))
	return out.String()
}

func FuzzRedactURI(f *testing.F) {
	f.Add("user", "pass@word", "host")
	f.Add("user", "a/b?c", "host")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		if strings.ContainsAny(user+host, ":@/?#") || len(password) < 8 || strings.Contains(Redacted, password) {
			return
		}
		shown := RedactURI("mongodb://" + user + ":" + password + "@" + host)
		check.Equal(t, "shown", strings.TrimSuffix(strings.TrimPrefix(shown, "mongodb://"+user+":"), "@"+host), Redacted)
	})
}
