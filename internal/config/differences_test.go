package config_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

func TestDifferences(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *config.Config)
		want   []string
	}{
		{"none", func(*config.Config) {}, nil},
		{"plain", func(c *config.Config) { c.Issuer, c.Log.Level = "https://issuer.example", "debug" }, []string{"issuer", "log.level"}},
		{
			"a duration and a number", func(c *config.Config) { c.Tokens.AccessTTL, c.RateLimit.MaxKeys = config.Duration(time.Minute), 7 },
			[]string{"tokens.access_ttl", "rate_limit.max_keys"},
		},
		{
			"in what is embedded", func(c *config.Config) { c.FailedAttempts.Users.PerName, c.RateLimit.Mode = 5, ratelimit.Off },
			[]string{"failed_attempts.users.per_name", "rate_limit.mode"},
		},
		{"the file of the store", func(c *config.Config) { c.Store.Embedded = &config.Embedded{Path: "x"} }, []string{"store.embedded.path"}},
		{
			"another store", func(c *config.Config) { c.Store = config.Store{MongoDB: &config.MongoDB{URI: "mongodb://a"}} },
			[]string{"store.embedded", "store.mongodb"},
		},
		{"lists and maps", func(c *config.Config) {
			c.RateLimit.Default.User = []ratelimit.Limit{ratelimit.NewLimit("x", 1, time.Second)}
			c.RateLimit.Clients = map[string]ratelimit.Policy{"a": {}}
			c.Scopes = map[string]string{"a": "b"}
			c.TrustedProxies = config.Proxies{{}}
		}, []string{"trusted_proxies", "scopes", "rate_limit.default.user", "rate_limit.clients"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := config.Default()
			tt.change(other)
			check.Equal(t, "differences", config.Differences(config.Default(), other), tt.want)
			check.Equal(t, "the other way round", config.Differences(other, config.Default()), tt.want)
		})
	}
}

// TestDifferencesLookAtEveryOption: each option has a path of its own.
func TestDifferencesLookAtEveryOption(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range config.Options() {
		value := map[string]string{"int": "7", "bool": "true", "duration": "17m", "float": "0.25", "strings": "none"}[o.Kind()]
		if value == "" {
			value = "other"
		}
		if o.Default() == value { // for an option that is on by default
			value = "false"
		}
		base := config.Default()
		if o.Path == "store.mongodb.database" || o.Path == "store.mongodb.uri" || o.Path == "store.mongodb.uri_file" {
			base.Store = config.Store{MongoDB: &config.MongoDB{}}
		}
		changed, _ := config.Load(config.Sources{Base: base, Flags: []config.FlagValue{{Name: o.Name, Value: value}}}) // valid or not
		for _, path := range config.Differences(base, changed) {
			seen[path] = true
		}
		if !seen[o.Path] {
			t.Errorf("%s is not among the differences: %v", o.Path, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// TestTextInsteadOfTheFile: if the text is given, the file is not read again.
func TestTextInsteadOfTheFile(t *testing.T) {
	cfg, err := config.Load(config.Sources{File: "no/such/file.yaml", Text: []byte("log: { level: debug }\n")})
	check.OK(t, err)
	check.Equal(t, "level", cfg.Log.Level, "debug")
	_, err = config.Load(config.Sources{File: "x.yaml", Text: []byte("a: 1")})
	check.ErrorSays(t, err, "x.yaml:1")
	cfg, err = config.Load(config.Sources{File: "x.yaml", Text: []byte{}})
	check.OK(t, err)
	check.Equal(t, "of an empty file", config.Differences(config.Default(), cfg), nil)
	check.Equal(t, "path by the environment", config.Sources{Environ: []string{"OAUTH_CONFIG=a.yaml"}}.Path(), "a.yaml")
	check.Equal(t, "path by the flag", config.Sources{File: "b.yaml", Environ: []string{"OAUTH_CONFIG=a.yaml"}}.Path(), "b.yaml")
}
