package bolt

import (
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// TestDamagedFile flips bytes all over a data file. Wherever the damage is, opening and using the
// file returns results or errors and never crashes the process. The file is always the same, with
// 200 codes in it, because bbolt's order of pages varies, and bbolt follows one damaged file in
// 12,000 until memory runs out. The file is the compressed result of written. A new format needs a
// new file.
func TestDamagedFile(t *testing.T) {
	good := unpack(t, "codes.db.gz")
	noticed := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		damaged := append([]byte(nil), good...)
		for range 1 + r.IntN(256) {
			damaged[r.IntN(len(damaged))] = byte(r.Uint32())
		}
		path := filepath.Join(t.TempDir(), "data.db")
		check.OK(t, os.WriteFile(path, damaged, 0o600))
		if err := useAll(t, path); errors.Is(err, ErrCorrupt) {
			noticed++
		}
	}
	if noticed == 0 {
		t.Error("the damage was never noticed: the test is blind")
	}
}

// useAll opens the file and calls everything that reads old pages.
func useAll(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	ctx, r := t.Context(), grants.NewRepository(s)
	errs := []error{}
	for i := 0; i < 200; i += 10 {
		code, err := r.Grant(ctx, secret.DigestOf(string(rune('a'+i))))
		errs = append(errs, err, r.Claim(ctx, code.Redeemed()))
	}
	errs = append(errs, s.List(ctx, accounts.UsersTable, store.Query{}, func(u store.Record) error {
		errs = append(errs, u.Err)
		return nil
	}))
	_, err = s.Sweep(ctx, time.Now())
	return errors.Join(append(errs, err, s.Close())...)
}

// unpack returns the content of a compressed file in testdata.
func unpack(tb testing.TB, name string) []byte {
	tb.Helper()
	packed, err := os.Open(filepath.Join("testdata", name))
	check.OK(tb, err)
	z, err := gzip.NewReader(packed)
	check.OK(tb, err)
	content, err := io.ReadAll(z)
	check.OK(tb, errors.Join(err, packed.Close()))
	return content
}
