package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
)

type restoreFlags struct {
	dataFileFlags
	check, keep, yes, create bool
	wait                     time.Duration
}

// NewRestore makes the restore command.
func NewRestore(c *command.Env) *cobra.Command {
	f := &restoreFlags{}
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Replace the data file of the embedded store with a backup", Args: command.Takes("FILE"),
		Long: `Replace the data file of the embedded store with a backup. The backup is checked first, and the old
data file is kept beside the new one. A running server restarts itself with the new file, and
returns to the old one if it cannot start.

All tokens, codes, sessions and consents become invalid: users sign in again, and clients get new
tokens. With --keep-sessions they return to the state of the backup: codes and refresh tokens used
or revoked since then are valid again.

Clients, users, limits and signing keys always come from the backup.`,
		Example: `  oauth-server restore /var/backups/oauth-server.db --check
  oauth-server restore /var/backups/oauth-server.db --data /var/lib/oauth-server/oauth-server.db`,
	}
	f.add(c, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "check the backup, show its contents and change nothing")
	flags.BoolVar(&f.keep, "keep-sessions", false, "keep the sessions, refresh tokens, codes and consents in the backup")
	flags.BoolVar(&f.yes, "yes", false, "replace the data file without asking")
	flags.BoolVar(&f.create, "create", false, "create a missing data file without asking")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for a running server to restart")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := command.UntilSignal(cmd.Context(), syscall.SIGHUP) // also when the terminal closes: leave no file with keys
		defer cancel()
		return f.run(ctx, args[0])
	}
	return cmd
}

func (f *restoreFlags) run(ctx context.Context, backup string) error {
	sum, err := app.InspectDataFile(ctx, backup)
	switch {
	case errors.Is(err, app.ErrStoreHeld):
		return fmt.Errorf("%s is open in another process, so it is not a backup", backup)
	case err != nil:
		return fmt.Errorf("check the backup: %w", err)
	case f.check:
		return f.List(shown(backup, &sum), append([][]string{{"backup", backup}}, rowsOf(&sum)...)...)
	}
	if err := f.find(); err != nil {
		return err
	}
	if command.SameFile(backup, f.path) {
		return command.Usagef("%s is the data file itself", backup)
	}
	held, err := app.HoldDataFile(f.path)
	switch {
	case errors.Is(err, app.ErrStoreHeld):
		return f.throughServer(ctx, backup, &sum)
	case errors.Is(err, app.ErrNoDataFile):
		return fmt.Errorf("nothing was restored: %w; give --data, or move this file away and add --create", err)
	case err != nil:
		return err
	}
	defer func() { _ = held.Release() }()
	f.direct(nil)
	if err := f.agree(backup, &sum, held.IsNew()); err != nil {
		return err
	}
	prepared, err := f.prepare(ctx, backup)
	if err != nil {
		return err
	}
	kept, err := held.Restore(prepared)
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	return f.done(backup, kept)
}

// agree describes the backup and asks for confirmation. It always lists the unreadable parts.
func (f *restoreFlags) agree(backup string, sum *app.DataFileSummary, isNew bool) error {
	if isNew && f.create || !isNew && f.yes {
		if lost := unreadable(sum); lost != "" {
			f.Note("unreadable in the backup: %s", lost)
		}
		return nil
	}
	f.Note("%s replaces %s:", backup, f.path)
	for _, row := range rowsOf(sum) {
		f.Note("  %s: %s", row[0], row[1])
	}
	if isNew {
		return f.ConfirmNew(f.store())
	}
	if f.keep {
		f.Note("Tokens and codes in the backup are valid again, even if they were used or revoked since.")
	} else {
		f.Note("All users must sign in again, and all clients must get new tokens.")
	}
	return f.Confirm()
}

// prepare writes the file that will replace the data file. It records the restoration in the file's
// audit trail.
func (f *restoreFlags) prepare(ctx context.Context, backup string) (string, error) {
	signIns := "ended"
	if f.keep {
		signIns = "kept"
	}
	r := registry.New(registry.Options{Reason: f.Reason, By: clientcfg.Actor{Store: connect.Whoami()}})
	event, err := r.RestoreEvent(map[string]string{"file": filepath.Base(backup), "sign_ins": signIns})
	if err != nil {
		return "", err
	}
	return app.PrepareRestore(ctx, backup, f.path, app.Restoration{KeepSignIns: f.keep, Event: event})
}

func (f *restoreFlags) done(backup, kept string) error {
	return f.Answer(map[string]string{"restored": f.path, "from": backup, "former": kept}, "restored "+f.path+former(kept))
}

func former(kept string) string {
	if kept == "" {
		return ""
	}
	return "; the old data file is " + kept
}

// throughServer makes the server that holds the data file replace it, and waits until the server
// has restarted.
func (f *restoreFlags) throughServer(ctx context.Context, backup string, sum *app.DataFileSummary) error {
	api, err := f.holderOfFile(ctx)
	if err != nil {
		return err
	}
	before, err := adminlocal.Read(f.path)
	if err != nil {
		return err
	}
	if err := f.agree(backup, sum, false); err != nil {
		return err
	}
	prepared, err := f.prepare(ctx, backup)
	if err != nil {
		return err
	}
	ours, err := os.Stat(prepared)
	if err != nil {
		return err
	}
	// The server may have accepted the request even without an answer. The files show that.
	request := adminclient.Change{
		Method: http.MethodPost, Path: "/restore", Query: url.Values{"file": {filepath.Base(prepared)}}, ETag: "*",
	}
	if _, err := api.Change(ctx, request, nil); err != nil && withdraw(prepared) {
		return fmt.Errorf("%w (nothing was restored)", err)
	}
	started := f.awaitStart(ctx, api, &before)
	withdrawn := withdraw(prepared)
	switch now := f.nameNow(ours); {
	case now == f.path && started:
		return f.done(backup, f.newestKept())
	case now == f.path:
		return fmt.Errorf("the backup is in place, but the server did not restart within %s: see its log", f.wait)
	case withdrawn && started:
		return errors.New("nothing was restored: the server restarted without the backup: see its log")
	case withdrawn && ctx.Err() != nil:
		return errors.New("nothing was restored: interrupted before the server took the backup")
	case withdrawn:
		return fmt.Errorf("nothing was restored: the server did not take the backup within %s: see its log", f.wait)
	case strings.HasPrefix(now, f.path+".before-restore-"):
		return errors.New("the backup was restored, but another restore has replaced it")
	case now != "":
		return fmt.Errorf("the server could not start with the backup (now %s) and returned to the old data file: see its log", now)
	}
	return errors.New("nothing was restored: the server rejected the backup: see its log")
}

// nameNow returns the current name of a prepared file: the data file's or a neighbour's; empty if
// it is gone.
func (f *restoreFlags) nameNow(prepared os.FileInfo) string {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return ""
	}
	for _, e := range entries { // the data file sorts first among the names with its prefix
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), filepath.Base(f.path)) && os.SameFile(prepared, info) {
			return filepath.Join(filepath.Dir(f.path), e.Name())
		}
	}
	return ""
}

// withdraw removes a prepared file before a server can use it. It reports whether the file was
// still there.
func withdraw(prepared string) bool { return os.Remove(prepared) == nil }

// awaitStart waits until a server with a new key holds the data file, and reports whether one does.
func (f *restoreFlags) awaitStart(ctx context.Context, api *adminclient.Client, before *adminlocal.Access) bool {
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		if now, err := adminlocal.Read(f.path); err == nil && now != *before && f.Prove(ctx, api, &now) == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

// newestKept returns the path of the former data file: the last one, because the names contain the
// time.
func (f *restoreFlags) newestKept() (kept string) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return ""
	}
	for _, e := range entries { // In name order
		if strings.HasPrefix(e.Name(), filepath.Base(f.path)+".before-restore-") {
			kept = filepath.Join(filepath.Dir(f.path), e.Name())
		}
	}
	return kept
}
