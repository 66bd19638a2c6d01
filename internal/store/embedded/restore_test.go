package embedded

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

var restored = Restoration{Event: clientcfg.Event{
	ID: "r", At: time.Date(2026, time.May, 3, 12, 0, 0, 500_000_000, time.UTC), Action: "restore", Target: clientcfg.StoreTarget,
}}

// filled makes a file with one record of each kind, issued to a client and a user.
func filled(t *testing.T) (path string, c clientcfg.Client, u grants.User) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	ctx, later := t.Context(), restored.Event.At.Add(time.Hour)
	c = clientcfg.Client{ID: "shop", Stamp: secret.NewStamp(), Version: 1, SecretDigest: secret.DigestOf("s")}
	u = grants.User{Name: "ada", Stamp: secret.NewStamp(), PasswordHash: "h"}
	for i := range 3 * sweepStep {
		other := clientcfg.Client{ID: "other" + string(rune('a'+i%26)) + secret.ID(), Version: 1, Stamp: c.Stamp}
		check.OK(t, s.CreateClient(ctx, other))
	}
	check.OK(t, errors.Join(
		s.CreateClient(ctx, c), s.CreateUser(ctx, u),
		s.CreateCode(ctx, grants.Code{Digest: secret.DigestOf("code"), ExpiresAt: later}),
		s.CreateFamily(ctx, grants.Family{Digest: secret.DigestOf("family"), ExpiresAt: later}),
		s.CreateSession(ctx, grants.Session{Digest: secret.DigestOf("session"), Username: "ada", ExpiresAt: later}, 5),
		s.PutAgreement(ctx, grants.Agreement{Username: "ada", ClientID: "shop", ID: "a", Version: 1, ExpiresAt: later}),
		s.Revoke(ctx, "tombstone", later),
		s.writes.do(ctx, func(w *writeTx) error { return w.put(clients, []byte("odd"), []byte("\xffno client")) }),
		s.writes.do(ctx, func(w *writeTx) error { return w.put(users, []byte("odd"), []byte("no user")) }),
		s.Close(),
	))
	return path, c, u
}

// TestPrepare: what was issued before a restoration ends, unless it is to be kept; nothing else changes.
func TestPrepare(t *testing.T) {
	for _, keep := range []bool{false, true} {
		backup, c, u := filled(t)
		before, err := os.ReadFile(backup)
		check.OK(t, err)
		r := restored
		r.KeepSignIns = keep
		data := filepath.Join(t.TempDir(), "data.db")
		prepared, err := Prepare(t.Context(), backup, data, r)
		check.OK(t, err)
		info, err := os.Stat(prepared)
		check.OK(t, err)
		check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
		after, err := os.ReadFile(backup)
		check.OK(t, err)
		check.Equal(t, "the backup is as it was", bytes.Equal(before, after), true)

		s := mustOpen(t, prepared)
		ctx := t.Context()
		_, noCode := s.Code(ctx, secret.DigestOf("code"))
		_, noFamily := s.Family(ctx, secret.DigestOf("family"))
		_, noSession := s.Session(ctx, secret.DigestOf("session"))
		_, noAgreement := s.Agreement(ctx, "ada", "shop")
		for name, err := range map[string]error{"code": noCode, "family": noFamily, "session": noSession, "agreement": noAgreement} {
			if kept := err == nil; kept != keep || !kept && !errors.Is(err, grants.ErrNotFound) {
				t.Errorf("keep %v: %s: %v", keep, name, err)
			}
		}
		revoked, err := s.Revoked(ctx, "tombstone")
		check.OK(t, err)
		check.Equal(t, "a revocation is kept", revoked, true)
		readable := 0
		_, err = s.Clients(ctx, func(r clientcfg.Record) {
			if r.Err != nil {
				check.Equal(t, "unreadable", r.ID, "odd")
				return
			}
			readable++
			if accepts := r.Client.Stamp.Accepts(c.Stamp.Revoked()); accepts != keep {
				t.Errorf("keep %v: tokens of %s are accepted: %v", keep, r.ID, accepts)
			}
			if r.ID == "shop" {
				check.Equal(t, "secret", r.Client.SecretDigest, c.SecretDigest)
			}
		})
		check.OK(t, err)
		check.Equal(t, "clients", readable, 3*sweepStep+1)
		ada, err := s.User(ctx, "ada")
		check.OK(t, err)
		check.Equal(t, "password", ada.PasswordHash, u.PasswordHash)
		check.Equal(t, "sessions of ada are accepted", ada.Stamp.Accepts(u.Stamp.Revoked()), keep)
		events, err := s.Events(ctx, clientcfg.EventQuery{Target: clientcfg.StoreTarget})
		check.OK(t, err)
		check.Equal(t, "events", len(events), 1)
		_, err = s.Sweep(ctx, restored.Event.At.Add(2*time.Hour))
		check.OK(t, err)
		indexed(t, s)
	}
}

// TestPrepareLeavesNothing: of a backup that cannot be used.
func TestPrepareLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(t.TempDir(), "backup.db")
	whole := written(t)
	check.OK(t, os.WriteFile(backup, whole[:len(whole)-4096], 0o600))
	if _, err := Prepare(t.Context(), backup, filepath.Join(dir, "data.db"), restored); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Prepare() = %v, want ErrCorrupt", err)
	}
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 0)
}

// TestPrepareClosesItsBackup: the event of the backup itself was open when the copy was made. Those of copies
// that were cut off before stay open.
func TestPrepareClosesItsBackup(t *testing.T) {
	backup, _, _ := filled(t)
	s := mustOpen(t, backup)
	at := restored.Event.At.Add(-time.Hour)
	for i, action := range []string{clientcfg.BackupAction, clientcfg.BackupAction, "delete"} {
		e := clientcfg.Event{ID: action, At: at.Add(time.Duration(i) * time.Minute), Action: action, Target: clientcfg.StoreTarget, Open: true}
		check.OK(t, s.AddEvent(t.Context(), e))
	}
	check.OK(t, s.Close())
	prepared, err := Prepare(t.Context(), backup, filepath.Join(t.TempDir(), "data.db"), restored)
	check.OK(t, err)
	events, err := mustOpen(t, prepared).Events(t.Context(), clientcfg.EventQuery{})
	check.OK(t, err)
	var open []bool
	for _, e := range events {
		open = append(open, e.Open)
	}
	check.Equal(t, "restore, delete, backup, backup: open", open, []bool{false, true, false, true})
}
