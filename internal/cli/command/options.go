package command

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

// rawFlag keeps its values in order. internal/config parses and validates them.
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

// Settings are the configuration flags of a command.
type Settings struct {
	File string
	Cmd  *cobra.Command
}

// mainSettings are the settings that help shows with a command. A topic has all.
var mainSettings = []string{
	"issuer", "listen", "admin-listen", "data", "mongodb-uri", "migrate",
	"upstream", "token-path", "public-url", "rate-limit-mode",
}

// AddSettings adds --config and a flag for each wanted option to a command.
func AddSettings(cmd *cobra.Command, wanted func(config.Option) bool) *Settings {
	s := &Settings{Cmd: cmd}
	cmd.Flags().StringVar(&s.File, "config", "", "YAML file (OAUTH_CONFIG)")
	for _, o := range config.Options() {
		if !wanted(o) {
			continue
		}
		f := cmd.Flags().VarPF(&rawFlag{kind: o.Kind()}, o.Name, "", o.Usage)
		f.DefValue = o.Default()
		if !slices.Contains(mainSettings, o.Name) {
			InTopic(AllSettings, cmd.Flags(), o.Name)
		}
		if o.Kind() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return s
}

// StoreInTopic makes help show only --data of the flags for the store.
func StoreInTopic(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, setting := f.Value.(*rawFlag); (setting || f.Name == "config") && f.Name != "data" {
			InTopic(Connecting, cmd.Flags(), f.Name)
		}
	})
}

// Sources returns the configuration file, the environment and the flags.
func (s *Settings) Sources(environ []string) config.Sources {
	src := config.Sources{File: s.File, Environ: environ}
	s.Cmd.Flags().Visit(func(f *pflag.Flag) {
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

// WithExisting opens the configured store while do runs. The store must exist: otherwise a mistyped
// --data would create a file and show an empty list of clients.
func WithExisting(ctx context.Context, cfg *config.Config, do func(app.Store) error) error {
	if e := cfg.Store.Embedded; e != nil {
		if IsNew(cfg) {
			return fmt.Errorf("data file %s does not exist: give --data, or create it with serve or a create command", e.Path)
		}
	}
	return withOpen(ctx, cfg, app.OpenExisting, do)
}

// IsNew reports whether the data file does not exist yet. Databases are only created by migrate.
func IsNew(cfg *config.Config) bool {
	if cfg.Store.Embedded == nil {
		return false
	}
	_, err := os.Stat(cfg.Store.Embedded.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// WithNew is like [WithExisting], for commands that may create the store. They ask before creating
// it, unless confirmed is set, because a command in the wrong directory would create a second
// store.
func (c *Env) WithNew(ctx context.Context, cfg *config.Config, confirmed bool, do func(app.Store) error) error {
	if IsNew(cfg) && !confirmed {
		if err := c.ConfirmNew(NameOf(cfg)); err != nil {
			return err
		}
	}
	open := app.OpenStore
	if !IsNew(cfg) && !confirmed {
		open = app.OpenExisting
	}
	return withOpen(ctx, cfg, open, do)
}

// ConfirmNew asks whether to create a data file.
func (c *Env) ConfirmNew(store string) error {
	c.Note("There is no data file yet. This creates %s", store)
	err := c.Confirm()
	if errors.Is(err, errNotAgreed) {
		return fmt.Errorf("%w: give another --data, or confirm with --create", errNotAgreed)
	}
	return err
}

func withOpen(ctx context.Context, cfg *config.Config, open func(context.Context, config.Store) (app.Store, error), do func(app.Store) error) (err error) {
	store, err := open(ctx, cfg.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store)
}

// SameFile reports whether two paths lead to the same file.
func SameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// NameOf names the store for a person, without a password.
func NameOf(cfg *config.Config) string {
	if m := cfg.Store.MongoDB; m != nil {
		return "the database " + m.Database + " of " + config.RedactURI(m.URI)
	}
	path := cfg.Store.Embedded.Path
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return "the store " + path
}

// StoreFlag returns the flag that names a store; empty if none was given.
func (s *Settings) StoreFlag() (name string) {
	s.Cmd.Flags().Visit(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*rawFlag); ok || flag.Name == "config" {
			name = flag.Name
		}
	})
	return name
}
