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
			if accepts := r.Client.Stamp.Accepts(c.Stamp.Revoked().Carried(), true); accepts != keep {
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
		check.Equal(t, "sessions of ada are accepted", ada.Accepts(u.Stamp.Revoked().Carried(), restored.Event.At), keep)
		check.Equal(t, "what has no stamp is accepted", ada.Accepts(secret.Stamp{}, restored.Event.At), keep)
		events, err := s.Events(ctx, clientcfg.EventQuery{Target: clientcfg.StoreTarget})
		check.OK(t, err)
		check.Equal(t, "events", len(events), 1)
		_, err = s.Sweep(ctx, restored.Event.At.Add(2*time.Hour))
		check.OK(t, err)
		indexed(t, s)
	}
}

// TestPrepareConverts: a backup of an earlier release becomes a file of this one.
func TestPrepareConverts(t *testing.T) {
	r := restored
	r.KeepSignIns = true
	dir := t.TempDir()
	prepared, err := Prepare(t.Context(), fileOfFormat1(t), filepath.Join(dir, "data.db"), r)
	check.OK(t, err)
	s := mustOpen(t, prepared)
	check.Equal(t, "contents", contents1(t, s), wanted1())
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 1)
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

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	data, kept := filepath.Join(dir, "data.db"), filepath.Join(dir, "kept")
	put := func(path, content string) { check.OK(t, os.WriteFile(path, []byte(content), 0o600)) }
	put(filepath.Join(dir, "p"), "first")
	there, err := Replace(data, filepath.Join(dir, "p"), kept)
	check.OK(t, err)
	check.Equal(t, "there was one", there, false)
	put(filepath.Join(dir, "p"), "second")
	there, err = Replace(data, filepath.Join(dir, "p"), kept)
	check.OK(t, err)
	check.Equal(t, "there was one", there, true)
	put(filepath.Join(dir, "p"), "third")
	if _, err := Replace(data, filepath.Join(dir, "p"), kept); !errors.Is(err, os.ErrExist) {
		t.Errorf("over one that is kept: %v", err)
	}
	for path, want := range map[string]string{data: "second", kept: "first", filepath.Join(dir, "p"): "third"} {
		got, err := os.ReadFile(path)
		check.OK(t, err)
		check.Equal(t, path, string(got), want)
	}
}

func TestHold(t *testing.T) {
	path, _, _ := filled(t)
	release, err := Hold(path)
	check.OK(t, err)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("Open() of a file that is held: %v", err)
	}
	check.OK(t, release())
	mustOpen(t, path)
	if _, err := Hold(path); !errors.Is(err, ErrLocked) {
		t.Errorf("Hold() of a file that is open: %v", err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	check.OK(t, os.WriteFile(damaged, bytes.Repeat([]byte{1}, 10_000), 0o600))
	for _, path := range []string{damaged, filepath.Join(t.TempDir(), "none.db")} {
		release, err := Hold(path)
		check.OK(t, err)
		check.OK(t, release())
	}
}
