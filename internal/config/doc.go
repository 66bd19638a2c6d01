// Package config reads the configuration: a YAML file, then the environment (OAUTH_…),
// then flags, each overriding the one before, onto [Default].
//
// It is strict. An unknown field, a duplicate one, a wrong type or an impossible value is
// a [fielderr.Error] with the path of the field and the place that it came from, and all
// of them are reported together:
//
//	rate_limit.default.user[0].window: must be longer than zero (oauth.yaml:12)
//	listen: "9096" is not host:port (OAUTH_LISTEN)
//
// Every setting that is a single value or a list of them can also be given as a flag and
// in the environment; [Options] lists them. The limits of rate_limit are structured and
// can be given in the file only.
//
// The package opens no store and no socket. What needs a store (does the client of a
// policy exist?) is checked by internal/app.
//
//	cfg, err := config.Load(config.Sources{
//		File:    "oauth.yaml",
//		Environ: os.Environ(),
//		Flags:   []config.FlagValue{{Name: "listen", Value: "127.0.0.1:0"}},
//	})
package config
