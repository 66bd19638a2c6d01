package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/config"
)

// dataFileFlags are the flags of the commands that copy and restore the data file.
type dataFileFlags struct {
	connect.API
	settings *command.Settings
	path     string // of the data file, symbolic links resolved
}

// Add adds the flags. A server that holds the file is found by the file alone.
func (f *dataFileFlags) add(c *command.Env, cmd *cobra.Command) {
	f.Env = c
	f.settings = command.AddSettings(cmd, config.Option.IsStore)
	f.TLS.Add(cmd.Flags())
	cmd.Flags().StringVar(&f.Reason, "reason", "", "reason, kept in the audit trail")
}

// find resolves the path of the data file. If OAUTH_SERVER sends the other commands to a server,
// the file has to be named explicitly, to avoid copying or replacing another server's file.
func (f *dataFileFlags) find() error {
	if server := f.Variable("OAUTH_SERVER"); server != "" && f.settings.StoreFlag() == "" {
		return command.Usagef("OAUTH_SERVER names %s, but this command needs a local data file: give --data or --config", server)
	}
	cfg, err := config.LoadStore(f.settings.Sources(f.Environ))
	if err != nil {
		return err
	}
	f.Timeout = 30 * time.Second
	if f.path = app.DataFile(cfg.Store); f.path == "" {
		return command.Usagef("the store is MongoDB: use mongodump and mongorestore (see docs/deployment.md)")
	}
	return nil
}

// direct reports on standard error that the command used the data file itself, if err is nil.
func (f *dataFileFlags) direct(err error) {
	if err == nil {
		f.Note("using %s directly", f.store())
	}
}

// store names the data file for a person.
func (f *dataFileFlags) store() string {
	return command.NameOf(&config.Config{Store: config.Store{Embedded: &config.Embedded{Path: f.path}}})
}

// holderOfFile returns the admin API of the server that holds the data file.
func (f *dataFileFlags) holderOfFile(ctx context.Context) (*adminclient.Client, error) {
	return f.Holder(ctx, f.path, fmt.Errorf("%s is in use by another process, probably a server that is starting or has no admin address on this machine: try again, or stop it first", f.path))
}

type backupFlags struct {
	dataFileFlags
	force bool
}

// NewBackup makes the backup command.
func NewBackup(c *command.Env) *cobra.Command {
	f := &backupFlags{}
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy the data file of the embedded store, even while a server runs", Args: command.Takes("FILE"),
		Long: `Write a consistent copy of the data file of the embedded store to FILE.

A running server makes the copy while it serves. Run the command on the same machine as the owner
of the data file: it finds the server through a key file beside it. FILE appears only once the copy
is complete and checked.

A backup contains everything in the data file: signing keys (encrypted if keys.secret is set),
password hashes and digests of secrets. Only you can read FILE. "-" writes to standard output
without a check: check it with "oauth-server restore --check", and run umask 077 before you
redirect it to a file.`,
		Example: `  oauth-server backup /var/backups/oauth-server.db --data /var/lib/oauth-server/oauth-server.db
  oauth-server backup - | age -r age1... > oauth-server.db.age
  (umask 077; oauth-server backup - > oauth-server.backup)`,
	}
	f.add(c, cmd)
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite an existing FILE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := command.UntilSignal(cmd.Context(), syscall.SIGHUP) // also when the terminal closes: leave no partial file with keys
		defer cancel()
		if err := f.find(); err != nil {
			return err
		}
		if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data file %s does not exist: give --data", f.path)
		}
		if args[0] == "-" {
			return f.toOutput(ctx)
		}
		return f.toFile(ctx, args[0])
	}
	return cmd
}

func (f *backupFlags) toOutput(ctx context.Context) error {
	if f.Terminal {
		return command.Usagef("standard output is a terminal: give a file, or pipe the output")
	}
	if file, ok := f.Out.(*os.File); ok && openToOthers(file) {
		f.Note("warning: other users can read the output file, and a backup contains keys: run umask 077 first")
	}
	err := f.copy(ctx, f.Out)
	if err == nil {
		f.Note("check the backup with: oauth-server restore --check FILE")
	}
	return err
}

// openToOthers reports whether a regular file is readable by users other than its owner.
func openToOthers(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}

// copy writes the current data file: directly, or through the server that holds it.
func (f *backupFlags) copy(ctx context.Context, w io.Writer) error {
	err := app.CopyDataFile(ctx, f.path, w)
	if !errors.Is(err, app.ErrStoreHeld) {
		f.direct(err)
		return err
	}
	api, err := f.holderOfFile(ctx)
	if err != nil {
		return err
	}
	api.HTTP.Timeout = 0 // the server limits the duration, by the file's size
	query := url.Values{}
	if f.Reason != "" {
		query.Set("reason", f.Reason)
	}
	n, err := api.Stream(ctx, "/backup", query, w)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server ended the copy after %d bytes because it took too long; see the server's log", n)
	}
	return err
}

// toFile writes the backup to a temporary file in the same directory and renames it when it is
// complete.
func (f *backupFlags) toFile(ctx context.Context, file string) (err error) {
	if err := f.mayWrite(file); err != nil {
		return err
	}
	begun := time.Now()
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = part.Close()
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := errors.Join(f.copy(ctx, part), part.Sync()); err != nil {
		return err
	}
	sum, err := app.InspectDataFile(ctx, part.Name())
	if err != nil {
		return fmt.Errorf("check the copy: %w", err)
	}
	if err := errors.Join(part.Close(), f.mayWrite(file)); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return err
	}
	if err := app.SyncDirectory(filepath.Dir(file)); err != nil {
		return err
	}
	return f.showBackup(file, &sum, time.Since(begun))
}

// mayWrite refuses to replace an existing file unless forced. It never allows replacing the data
// file.
func (f *backupFlags) mayWrite(file string) error {
	there, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	data, err := os.Stat(f.path)
	switch {
	case err != nil:
		return err
	case os.SameFile(there, data):
		return command.Usagef("%s is the data file itself", file)
	case !there.Mode().IsRegular():
		return command.Usagef("%s is not a regular file", file)
	case !f.force:
		return fmt.Errorf("%s already exists: give another file, or overwrite it with --force", file)
	}
	return nil
}

// shownBackup is the report on a backup.
type shownBackup struct {
	File       string         `json:"file"`
	Bytes      int64          `json:"bytes"`
	Seconds    float64        `json:"seconds,omitempty"`
	Format     uint64         `json:"format"`
	Records    map[string]int `json:"records"`
	Unreadable map[string]int `json:"unreadable,omitempty"`
	Newest     int64          `json:"newest_change"` // 0: no change yet
	Event      *time.Time     `json:"newest_event"`  // null: no change yet
}

func shown(file string, sum *app.DataFileSummary) shownBackup {
	s := shownBackup{
		File: file, Bytes: sum.Bytes, Format: sum.Format, Records: sum.Records, Unreadable: sum.Unreadable, Newest: sum.Newest,
	}
	if !sum.Changed.IsZero() {
		s.Event = &sum.Changed
	}
	return s
}

func (f *backupFlags) showBackup(file string, sum *app.DataFileSummary, took time.Duration) error {
	s := shown(file, sum)
	s.Seconds = took.Seconds()
	rows := append([][]string{{"backup", file}}, rowsOf(sum)...)
	return f.List(s, append(rows, []string{"took", took.Round(time.Millisecond).String() + ", including the check"})...)
}

// rowsOf describes the contents of a data file as table rows.
func rowsOf(sum *app.DataFileSummary) [][]string {
	trail := "empty"
	if sum.Newest > 0 {
		trail = fmt.Sprintf("up to change %d, at %s", sum.Newest, command.DateTime(sum.Changed))
	}
	rows := [][]string{
		{"size", fmt.Sprintf("%d bytes, format %d", sum.Bytes, sum.Format)},
		{"holds", counted(sum.Records)},
		{"audit trail", trail},
	}
	if lost := unreadable(sum); lost != "" {
		rows = append(rows, []string{"unreadable", lost})
	}
	return rows
}

// unreadable lists the unreadable records of a data file for a person, by table; empty if everything
// can be read.
func unreadable(sum *app.DataFileSummary) string {
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(sum.Unreadable)) {
		parts = append(parts, fmt.Sprintf("%d in %s", sum.Unreadable[table], table))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; written by a newer release or damaged"
}

// counted lists how many records of each kind a data file has, so that an operator recognises it.
func counted(records map[string]int) string {
	var parts []string
	for _, n := range [...]struct{ table, one string }{
		{"clients", "client"},
		{"users", "user"},
		{"keys", "signing key"},
		{"grants", "sign-in"},
		{"sessions", "browser session"},
		{"agreements", "consent"},
		{"bans", "ban"},
		{"subjects", "remembered user"},
		{"revocations", "revocation"},
		{"counters", "counter"},
	} {
		if count := records[n.table]; count > 0 || n.table == "clients" || n.table == "users" {
			parts = append(parts, fmt.Sprintf("%d %s", count, command.Plural(count, n.one)))
		}
	}
	return strings.Join(parts, ", ")
}
