package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	file   string
	cmd    *cobra.Command
	create bool // a store that is not there yet may be made, without asking
}

// creates is the name of the commands that may make a new store.
const creates = "create"

// addSettings gives a command --config and a flag for each option wanted.
func addSettings(cmd *cobra.Command, wanted func(config.Option) bool) *settings {
	s := &settings{cmd: cmd}
	cmd.Flags().StringVar(&s.file, "config", "", "YAML file (OAUTH_CONFIG)")
	if cmd.Name() == creates {
		cmd.Flags().BoolVar(&s.create, "create", false, "make the data file if there is none, without asking")
	}
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

// withStore opens the configured store while do runs. The store must exist: a mistyped --data
// would otherwise create a file, and show an empty list of clients.
func (c *cli) withStore(ctx context.Context, s *settings, do func(app.Store) error) error {
	cfg, err := config.LoadStore(s.sources(c.environ))
	if err != nil {
		return err
	}
	if err := withExisting(ctx, cfg, do); err != nil {
		return err
	}
	if !slices.Contains(readers, s.cmd.Name()) {
		c.noteStore(cfg)
	}
	return nil
}

// readers are the commands that write nothing. All others say which store they have changed.
var readers = []string{"list", "show"}

// noteStore says which store a person has changed.
func (c *cli) noteStore(cfg *config.Config) {
	if c.output != outputJSON {
		c.note("note: the store is %s", nameStore(cfg))
	}
}

// nameStore names a store, without a password.
func nameStore(cfg *config.Config) string {
	if m := cfg.Store.MongoDB; m != nil {
		return fmt.Sprintf("the database %q at %s", m.Database, config.RedactURI(m.URI))
	}
	path := cfg.Store.Embedded.Path
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return "the file " + path
}

func withExisting(ctx context.Context, cfg *config.Config, do func(app.Store) error) error {
	if e := cfg.Store.Embedded; e != nil {
		if isNew(cfg) {
			return fmt.Errorf("there is no data file %s: name it with --data, or create it with serve or a create command", e.Path)
		}
	}
	return withOpen(ctx, cfg, do)
}

// isNew reports whether opening the store would make a data file. A database is made by migrate only.
func isNew(cfg *config.Config) bool {
	if cfg.Store.Embedded == nil {
		return false
	}
	_, err := os.Stat(cfg.Store.Embedded.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// onStore makes a command that works on the configured store, which must exist.
func (c *cli) onStore(cmd *cobra.Command, do func(ctx context.Context, store app.Store, args []string) error) *cobra.Command {
	set := addSettings(cmd, config.Option.IsStore)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withStore(cmd.Context(), set, func(store app.Store) error { return do(cmd.Context(), store, args) })
	}
	return cmd
}

// withNewStore is withStore for commands that may create the store: if it is not there, they ask, because
// a command in the wrong directory would make another one.
func (c *cli) withNewStore(ctx context.Context, s *settings, do func(app.Store) error) error {
	cfg, err := config.LoadStore(s.sources(c.environ))
	if err != nil {
		return err
	}
	if isNew(cfg) && !s.create {
		c.note("There is no data file yet. This makes a new one: %s", nameStore(cfg))
		switch err := c.confirm(); {
		case errors.Is(err, errNotAgreed):
			return fmt.Errorf("%w: name another data file with --data, or confirm the new one with --create", errNotAgreed)
		case err != nil:
			return err
		}
	}
	if err := withOpen(ctx, cfg, do); err != nil {
		return err
	}
	c.noteStore(cfg)
	return nil
}

func withOpen(ctx context.Context, cfg *config.Config, do func(app.Store) error) (err error) {
	store, err := app.OpenStore(ctx, cfg.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(marking{store})
}
