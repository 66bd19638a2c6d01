package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminclient"
	"oauth-server/internal/adminlocal"
	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

type restoreFlags struct {
	dataFileFlags
	check, keep, yes bool
	wait             time.Duration
}

func newRestore(c *cli) *cobra.Command {
	f := &restoreFlags{}
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the data file of the embedded store", Args: takes("FILE"),
		Long: `Put a backup in the place of the data file of the embedded store. The backup is checked as a
whole before anything is touched, and the former data file is kept beside the new one. If a
server holds the data file, it stops serving, starts afresh with the new one in the same
process, and goes back to the former one if it cannot start.

What was issued before the restoration is worthless then: all users sign in again, all
clients get new tokens, and users are asked for their consent again. With --keep-sessions that
is as it was when the backup was made: codes and refresh tokens that were used since are good
again, and what was revoked since is not revoked any more. In both cases clients, secrets,
users, passwords, operators, limits and signing keys are those of the backup.`,
		Example: `  oauth-server restore /var/backups/oauth-server.db --check
  oauth-server restore /var/backups/oauth-server.db --data /var/lib/oauth-server/oauth-server.db`,
	}
	f.add(c, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "check the backup, show what it holds and change nothing")
	flags.BoolVar(&f.keep, "keep-sessions", false, "leave sessions, refresh tokens, codes and consents as they are in the backup")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for a running server to start afresh")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := untilSignal(cmd.Context())
		defer cancel()
		return f.run(ctx, args[0])
	}
	return cmd
}

func (f *restoreFlags) run(ctx context.Context, backup string) error {
	sum, err := app.InspectDataFile(ctx, backup)
	switch {
	case errors.Is(err, app.ErrStoreHeld):
		return fmt.Errorf("%s is open in another process, so it is no backup", backup)
	case err != nil:
		return fmt.Errorf("the backup cannot be used: %w", err)
	case f.check:
		return f.list(shown(backup, &sum), append([][]string{{"backup", backup}}, rowsOf(&sum)...)...)
	}
	if err := f.find(); err != nil {
		return err
	}
	if isSame(backup, f.path) {
		return usagef("%s is the data file itself", backup)
	}
	var api *adminclient.Client
	release, err := app.HoldDataFile(f.path)
	switch {
	case errors.Is(err, app.ErrStoreHeld):
		if api, err = f.holderOfFile(ctx); err != nil {
			return err
		}
		release = func() error { return nil }
	case err != nil:
		return err
	default:
		f.direct(nil)
	}
	defer func() { _ = release() }()
	if err := f.agree(backup, &sum); err != nil {
		return err
	}
	prepared, err := f.prepare(ctx, backup)
	if err != nil {
		return err
	}
	if api != nil {
		return f.throughServer(ctx, api, backup, prepared)
	}
	kept, err := app.ReplaceDataFile(f.path, prepared)
	if err != nil {
		return fmt.Errorf("nothing was replaced unless the data file is the new one: %w", err)
	}
	return f.done(backup, kept)
}

// isSame reports whether two paths lead to one file.
func isSame(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// agree asks, after it has said what the backup holds.
func (f *restoreFlags) agree(backup string, sum *app.DataFileSummary) error {
	if f.yes {
		return nil
	}
	f.note("%s takes the place of %s:", backup, f.path)
	for _, row := range rowsOf(sum) {
		f.note("  %s: %s", row[0], row[1])
	}
	if f.keep {
		f.note("What was issued stays as good as the backup has it, also what was used or revoked since.")
	} else {
		f.note("All users have to sign in again, and all clients get new tokens.")
	}
	return f.confirm()
}

// prepare makes the file that takes the place of the data file. The restoration is an event in its trail.
func (f *restoreFlags) prepare(ctx context.Context, backup string) (string, error) {
	signIns := "ended"
	if f.keep {
		signIns = "kept"
	}
	r := registry.New(registry.Options{Reason: f.reason, By: clientcfg.Actor{Store: whoami()}})
	event, err := r.RestoreEvent(map[string]string{"file": filepath.Base(backup), "sign_ins": signIns})
	if err != nil {
		return "", err
	}
	return app.PrepareRestore(ctx, backup, f.path, app.Restoration{KeepSignIns: f.keep, Event: event})
}

func (f *restoreFlags) done(backup, kept string) error {
	return f.answer(map[string]string{"restored": f.path, "from": backup, "former": kept}, "restored "+f.path+former(kept))
}

func former(kept string) string {
	if kept == "" {
		return ""
	}
	return "; the former data file is " + kept
}

// throughServer has the server that holds the data file replace it, and waits until it has started afresh.
func (f *restoreFlags) throughServer(ctx context.Context, api *adminclient.Client, backup, prepared string) error {
	ours, err := os.Stat(prepared)
	if err != nil {
		return err
	}
	before, err := adminlocal.Read(f.path)
	if err != nil {
		return err
	}
	if err := api.Restore(ctx, filepath.Base(prepared), f.reason); err != nil {
		return errors.Join(err, os.Remove(prepared))
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		if now, err := adminlocal.Read(f.path); err == nil && now != before && f.prove(ctx, api, &now) == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not started afresh within %s: look at its log", f.wait)
		case <-look.C:
		}
	}
	there, err := os.Stat(f.path)
	switch {
	case err != nil:
		return err
	case !os.SameFile(ours, there):
		return errors.New("the server did not start with the backup and has put the former data file back: its log says why")
	}
	return f.done(backup, f.newestKept())
}

// newestKept returns where the former data file is: the last, because their names have the time.
func (f *restoreFlags) newestKept() (kept string) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return ""
	}
	for _, e := range entries { // in the order of their names
		if strings.HasPrefix(e.Name(), filepath.Base(f.path)+".before-restore-") {
			kept = filepath.Join(filepath.Dir(f.path), e.Name())
		}
	}
	return kept
}
