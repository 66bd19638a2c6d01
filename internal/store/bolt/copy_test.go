package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func anySize(int64) error { return nil }

// TestCopyIsOfOneMoment: a copy contains no part of a write made during the copy.
func TestCopyIsOfOneMoment(t *testing.T) {
	const all, before = 400, 50
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	nameOf := func(i int) secret.Digest { return secret.DigestOf(fmt.Sprint("code", i)) }
	r := grants.NewRepository(s)
	for i := range all {
		c := code(time.Now())
		c.Digest = nameOf(i)
		check.OK(t, r.CreateGrant(t.Context(), c))
	}
	redeem := func(i int) {
		code, err := r.Grant(t.Context(), nameOf(i))
		check.OK(t, err)
		check.OK(t, r.Claim(t.Context(), code.Redeemed()))
	}
	for i := range before {
		redeem(i)
	}
	var out bytes.Buffer
	var announced int64
	next := before
	err := s.Copy(t.Context(), writerFunc(func(b []byte) (int, error) {
		for range 40 { // one in each transaction
			if next < all {
				redeem(next)
				next++
			}
		}
		return out.Write(b)
	}), func(size int64) error {
		announced = size
		return nil
	})
	check.OK(t, err)
	check.Equal(t, "bytes", int64(out.Len()), announced)
	if next == before {
		t.Fatal("nothing was written during the copy: the test is blind")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	check.OK(t, os.WriteFile(path, out.Bytes(), 0o600))
	sum, err := Inspect(t.Context(), path, nil)
	check.OK(t, err)
	check.Equal(t, "codes", sum.Records["grants"], all)
	copied := grants.NewRepository(mustOpen(t, path))
	for i := range all {
		code, err := copied.Grant(t.Context(), nameOf(i))
		check.OK(t, err)
		check.Equal(t, fmt.Sprint("code ", i, " is claimed"), code.Claimed, i < before)
	}
}

// TestCopyKeepsNoWriteWaiting: no write waits for a copy, even if the file grows while the reader
// of the copy takes nothing.
func TestCopyKeepsNoWriteWaiting(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	grow := sync.OnceFunc(func() { grown(t, s) })
	check.OK(t, s.Copy(t.Context(), writerFunc(func(b []byte) (int, error) {
		grow()
		return len(b), nil
	}), anySize))
}

// TestCopyEnds: a copy ends when its time is up, when its reader goes away, and when it is refused.
func TestCopyEnds(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	refused := errors.New("refused")
	check.ErrorIs(t, s.Copy(t.Context(), io.Discard, func(int64) error { return refused }), refused, "begin refuses")
	check.ErrorIs(t, s.Copy(t.Context(), writerFunc(func([]byte) (int, error) { return 0, refused }), anySize), refused, "the writer fails")
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Copy(ctx, writerFunc(func(b []byte) (int, error) {
		cancel()
		return len(b), nil
	}), anySize)
	check.ErrorIs(t, err, context.Canceled, "the caller is gone")
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
		err := s.Copy(t.Context(), writerFunc(func(b []byte) (int, error) {
			<-time.After(2 * copyGrace)
			return len(b), nil
		}), anySize)
		if err == nil || !strings.Contains(err.Error(), "the copy took over") {
			t.Errorf("too slow: %v", err)
		}
	})
}

// TestCopyFile: a file that is not open is copied unchanged. An open file is refused.
func TestCopyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	check.OK(t, os.WriteFile(path, written(t), 0o600))
	before, err := os.ReadFile(path)
	check.OK(t, err)
	f, err := os.Create(filepath.Join(t.TempDir(), "copy.db"))
	check.OK(t, err)
	check.OK(t, errors.Join(CopyFile(t.Context(), path, f), f.Close()))
	after, err := os.ReadFile(path)
	check.OK(t, err)
	check.Equal(t, "the file is unchanged", bytes.Equal(before, after), true)
	sum, err := Inspect(t.Context(), f.Name(), nil)
	check.OK(t, err)
	check.Equal(t, "format", sum.Format, uint64(format))
	mustOpen(t, path)
	check.ErrorIs(t, CopyFile(t.Context(), path, io.Discard), ErrLocked, "while it is open")
	if _, err := Inspect(t.Context(), path, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Inspect() while it is open: %v", err)
	}
}

// TestInspectCountsWhatIsNotServed: Inspect counts records that can be decoded but that a server
// does not use.
func TestInspectCountsWhatIsNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	things := store.Table{Name: "things"}
	_, good := s.Put(t.Context(), things, store.Record{Key: "good", Value: []byte("{}")}, store.Seen{})
	_, odd := s.Put(t.Context(), things, store.Record{Key: "odd", Value: []byte(`{"a":1}`)}, store.Seen{})
	check.OK(t, errors.Join(good, odd, s.Close()))
	sum, err := Inspect(t.Context(), path, Readers{"things": func(r *store.Record) error {
		if len(r.Value) > 2 {
			return store.ErrUnreadable
		}
		return nil
	}})
	check.OK(t, err)
	check.Equal(t, "unreadable", sum.Unreadable, map[string]int{"things": 1})
}

// grown makes the file larger than its initial map.
func grown(t *testing.T, s *Store) {
	t.Helper()
	value := []byte(`{"a":"` + strings.Repeat("x", store.MaxValue-100) + `"}`)
	for i := range smallMap/len(value) + 1 {
		r := store.Record{Key: fmt.Sprint(i), Value: value, Version: 1}
		check.OK(t, s.PutAll(t.Context(), store.Table{Name: "things"}, []store.Record{r}))
	}
}
