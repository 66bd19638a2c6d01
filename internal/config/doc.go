// Package config reads the configuration: a YAML file, then the environment (OAUTH_…), then flags.
// Each overrides the ones before, beginning with [Default].
//
// It is strict. An unknown field, a duplicate one, a wrong type or an impossible value is a
// [fielderr.Error] with the path and the source of the field. All errors are reported together:
//
//	rate_limit.default.user[0].window: must be longer than zero (oauth.yaml:12)
//	listen: "9096" is not host:port (OAUTH_LISTEN)
//
// Every setting that is a single value or a list of values can also be given as a flag and in the
// environment; [Options] lists them. The limits of rate_limit are structured and can only be given
// in the file.
//
// The package opens no store and no socket. internal/app makes the checks that need a store, such
// as whether the client of a policy exists.
//
//	cfg, err := config.Load(config.Sources{
//		File:    "oauth.yaml",
//		Environ: os.Environ(),
//		Flags:   []config.FlagValue{{Name: "listen", Value: "127.0.0.1:0"}},
//	})
package config
