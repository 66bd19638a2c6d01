package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// prepareBackup creates a data file with a client, a backup without that client, and a prepared
// file from the backup.
func prepareBackup(t *testing.T) (cfg *config.Config, prepared string) {
	t.Helper()
	cfg = testConfig(t)
	data := cfg.Store.Embedded.Path
	store, err := OpenStore(t.Context(), cfg.Store)
	check.OK(t, errors.Join(err, store.Close()))
	backup := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(backup)
	check.OK(t, err)
	check.OK(t, errors.Join(CopyDataFile(t.Context(), data, f), f.Close()))
	store, err = OpenStore(t.Context(), cfg.Store)
	check.OK(t, err)
	check.OK(t, store.CreateClient(t.Context(), clientcfg.Client{ID: "since", Version: 1}, clientcfg.Event{}))
	check.OK(t, store.Close())
	prepared, err = PrepareRestore(t.Context(), backup, data, Restoration{Event: clientcfg.Event{ID: "r", Action: "restore"}})
	check.OK(t, err)
	return cfg, prepared
}

// isRestored reports whether the data file is the backup. It fails if a prepared file is left.
func isRestored(t *testing.T, cfg *config.Config) bool {
	t.Helper()
	left, err := filepath.Glob(cfg.Store.Embedded.Path + ".restore-*")
	check.OK(t, err)
	check.Equal(t, "prepared files", len(left), 0)
	sum, err := InspectDataFile(t.Context(), cfg.Store.Embedded.Path)
	check.OK(t, err)
	return sum.Records["clients"] == 0
}

// serveOnce runs Serve. It calls the n-th function for the n-th server, once it listens.
func serveOnce(ctx context.Context, t *testing.T, cfg *config.Config, log *slog.Logger, listening ...func(*Server)) error {
	t.Helper()
	n := 0
	return Serve(ctx, cfg, Options{Logger: log, Listening: func(s *Server) {
		listening[n](s)
		n++
	}})
}

// TestOneRestorationAtATime checks that a second restoration is refused, also while the server
// stops.
func TestOneRestorationAtATime(t *testing.T) {
	_, prepared := prepareBackup(t)
	b := &backups{path: strings.Split(prepared, ".restore-")[0], wanted: make(chan string, 1)}
	name := filepath.Base(prepared)
	check.OK(t, b.Restore(t.Context(), name))
	<-b.requests() // the server stops now
	check.ErrorSays(t, b.Restore(t.Context(), name), "another restore is running")
	stopping := &backups{path: b.path, wanted: make(chan string, 1)}
	check.Equal(t, "accepted", stopping.close(), "")
	check.ErrorSays(t, stopping.Restore(t.Context(), name), "the server is stopping")
}

// TestRestoreAfterAFailedStop checks that an accepted restoration is done even if a step of the
// stop fails.
func TestRestoreAfterAFailedStop(t *testing.T) {
	cfg, prepared := prepareBackup(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := serveOnce(ctx, t, cfg, nil, func(s *Server) {
		s.undo.push("tracing", func(context.Context) error { return errors.New("no collector") })
		check.OK(t, s.base.backups.Restore(ctx, filepath.Base(prepared)))
	}, func(*Server) { cancel() })
	check.OK(t, err)
	check.Equal(t, "restored", isRestored(t, cfg), true)
}

// TestRestoreWhileTheServerStops checks that the restoration is not done, that the log says so, and
// that nothing is left.
func TestRestoreWhileTheServerStops(t *testing.T) {
	for range 8 { // the stop or the restoration is noticed first
		cfg, prepared := prepareBackup(t)
		log := &check.Buffer{}
		ctx, cancel := context.WithCancel(t.Context())
		err := serveOnce(ctx, t, cfg, newLogger(cfg.Log, log), func(s *Server) {
			check.OK(t, s.base.backups.Restore(ctx, filepath.Base(prepared)))
			cancel()
		})
		check.OK(t, err)
		check.Equal(t, "restored", isRestored(t, cfg), false)
		if !strings.Contains(log.String(), "data file not restored because the server is stopping") {
			t.Errorf("the log has\n%s", log.String())
		}
	}
}

// TestRestoreUnseen checks that the old file is put back if the server is stopped before it has
// started with the restored file, because then it is unknown whether it can start.
func TestRestoreUnseen(t *testing.T) {
	cfg, prepared := prepareBackup(t)
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "data file restored; restarting") {
			cancel()
		}
		return len(b), nil
	}), nil))
	err := serveOnce(ctx, t, cfg, log, func(s *Server) {
		check.OK(t, s.base.backups.Restore(ctx, filepath.Base(prepared)))
	})
	check.OK(t, err)
	check.Equal(t, "restored", isRestored(t, cfg), false)
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
