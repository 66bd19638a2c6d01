package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
)

// rawFlag keeps its values in order; internal/config parses and validates them.
type rawFlag struct {
	kind   string
	values []string
}

// String implements pflag.Value.
func (f *rawFlag) String() string { return strings.Join(f.values, ",") }

// Set implements pflag.Value.
func (f *rawFlag) Set(s string) error {
	f.values = append(f.values, s)
	return nil
}

// Type implements pflag.Value.
func (f *rawFlag) Type() string { return f.kind }

// settings are the configuration flags of a command.
type settings struct {
	file string
	cmd  *cobra.Command
}

// addSettings gives a command --config and a flag for each option wanted.
func addSettings(cmd *cobra.Command, wanted func(config.Option) bool) *settings {
	s := &settings{cmd: cmd}
	cmd.Flags().StringVar(&s.file, "config", "", "YAML file (OAUTH_CONFIG)")
	for _, o := range config.Options() {
		if !wanted(o) {
			continue
		}
		f := cmd.Flags().VarPF(&rawFlag{kind: o.Kind()}, o.Name, "", o.Usage)
		f.DefValue = o.Default()
		if o.Kind() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return s
}

// sources returns the configuration file, the environment and the flags.
func (s *settings) sources(environ []string) config.Sources {
	src := config.Sources{File: s.file, Environ: environ}
	s.cmd.Flags().Visit(func(f *pflag.Flag) {
		raw, ok := f.Value.(*rawFlag)
		if !ok {
			return
		}
		for _, v := range raw.values {
			src.Flags = append(src.Flags, config.FlagValue{Name: f.Name, Value: v})
		}
	})
	return src
}

// withExisting opens the configured store while do runs. The store must exist: a mistyped --data
// would otherwise create a file, and show an empty list of clients.
func withExisting(ctx context.Context, cfg *config.Config, do func(app.Store) error) error {
	if e := cfg.Store.Embedded; e != nil {
		if _, err := os.Stat(e.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no data file %s: name it with --data, or create it with serve or a create command", e.Path)
		}
	}
	return withOpen(ctx, cfg, do)
}

// withOpen is withExisting for commands that may create the store.
func withOpen(ctx context.Context, cfg *config.Config, do func(app.Store) error) (err error) {
	store, err := app.OpenStore(ctx, cfg.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store)
}
