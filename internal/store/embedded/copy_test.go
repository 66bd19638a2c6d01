package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func anySize(int64) error { return nil }

// writerFunc is a function that is written to.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestCopyIsOfOneMoment: what is written during a copy is not in it, not even a part of it.
func TestCopyIsOfOneMoment(t *testing.T) {
	const all, before = 400, 50
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	nameOf := func(i int) secret.Digest { return secret.DigestOf(fmt.Sprint("code", i)) }
	for i := range all {
		check.OK(t, s.CreateCode(t.Context(), grants.Code{Digest: nameOf(i), ExpiresAt: time.Now().Add(time.Hour)}))
	}
	redeem := func(i int) { check.OK(t, s.RedeemCode(t.Context(), nameOf(i), &grants.Family{Digest: nameOf(i)})) }
	for i := range before {
		redeem(i)
	}
	var out bytes.Buffer
	var announced int64
	next := before
	err := s.copyBounded(t.Context(), writerFunc(func(b []byte) (int, error) {
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
	}, time.Hour)
	check.OK(t, err)
	check.Equal(t, "bytes", int64(out.Len()), announced)
	if next == before {
		t.Fatal("nothing was written during the copy: the test is blind")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	check.OK(t, os.WriteFile(path, out.Bytes(), 0o600))
	sum, err := Inspect(t.Context(), path, nil)
	check.OK(t, err)
	check.Equal(t, "codes", sum.Records["codes"], all)
	check.Equal(t, "families", sum.Records["refresh_tokens"], before)
	copied := mustOpen(t, path)
	for i := range all {
		code, err := copied.Code(t.Context(), nameOf(i))
		check.OK(t, err)
		if code.Claimed != (i < before) {
			t.Errorf("code %d: claimed is %v", i, code.Claimed)
		}
	}
}

// TestCopyMakesWay: a write for which the file has to be mapped anew waits for the copy, and all requests
// for that write; so the copy ends.
func TestCopyMakesWay(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	done := make(chan error, 1)
	var once bool
	err := s.copyBounded(t.Context(), writerFunc(func(b []byte) (int, error) {
		if !once {
			once = true
			go func() { done <- s.PutShared(context.Background(), "large", nil, make([]byte, initialMmapSize+1)) }()
			check.Eventually(t, "the write has begun", func() bool { return s.writes.since.Load() != 0 || len(done) > 0 })
		}
		return len(b), nil
	}), anySize, 0)
	if !errors.Is(err, ErrCopyEnded) {
		t.Errorf("Copy() = %v, want ErrCopyEnded", err)
	}
	check.OK(t, <-done)
	check.OK(t, s.copyBounded(t.Context(), io.Discard, anySize, 0))
}

// TestAnsweredWriteEndsNoCopy: a copy that begins when a write has been answered does not make way for it, however
// long it took.
func TestAnsweredWriteEndsNoCopy(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	nothing := func(*writeTx) error { return nil }
	// Without room for their answers, the loop of the writes cannot go on from the first one before the second is read.
	first, second := &write{nothing, make(chan error)}, &write{nothing, make(chan error)}
	s.writes.mu.Lock()
	s.writes.queue = append(s.writes.queue, first, second)
	s.writes.mu.Unlock()
	s.writes.signal()
	check.OK(t, <-first.done)
	err := s.copyBounded(t.Context(), io.Discard, anySize, 0)
	check.OK(t, <-second.done)
	check.OK(t, err)
}

// TestCopyMakesWayForAStalledReader: the write does not wait until the reader of the copy takes something.
func TestCopyMakesWayForAStalledReader(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	stalled, takes := make(chan struct{}), make(chan struct{})
	copied, written := make(chan error, 1), make(chan error, 1)
	go func() {
		copied <- s.copyBounded(context.Background(), writerFunc(func(b []byte) (int, error) {
			close(stalled)
			<-takes
			return len(b), nil
		}), anySize, 0)
	}()
	<-stalled
	go func() { written <- s.PutShared(context.Background(), "large", nil, make([]byte, initialMmapSize+1)) }()
	select {
	case err := <-written:
		check.OK(t, err)
	case <-time.After(30 * time.Second):
		t.Error("the write waits for the reader of the copy")
	}
	check.Equal(t, "the copy still waits for its reader", len(copied), 0)
	close(takes)
	if err := <-copied; !errors.Is(err, ErrCopyEnded) {
		t.Errorf("Copy() = %v, want ErrCopyEnded", err)
	}
}

// TestCopyIsBounded: in time, in how much the file grows, and by who asked for it.
func TestCopyIsBounded(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		b    *bounded
		want error
	}{
		{"within its bounds", &bounded{ctx: t.Context(), end: time.Now().Add(time.Hour), most: 1 << 40}, nil},
		{"too long", &bounded{ctx: t.Context(), end: time.Now().Add(-time.Second), most: 1 << 40}, ErrCopyEnded},
		{"too much growth", &bounded{ctx: t.Context(), end: time.Now().Add(time.Hour), most: 1}, ErrCopyEnded},
		{"cancelled", &bounded{ctx: gone, end: time.Now().Add(time.Hour), most: 1 << 40}, context.Canceled},
	} {
		tt.b.out, tt.b.store, tt.b.patience = io.Discard, s, time.Hour
		var err error
		for i := 0; i < 2*growthLook && err == nil; i++ {
			_, err = tt.b.Write(make([]byte, 1))
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	refused := errors.New("refused")
	if err := s.Copy(t.Context(), io.Discard, func(int64) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("begin refuses: %v", err)
	}
}

// TestCopyFile: of a file that is not open, as it is, not of one that is open.
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
	if err := CopyFile(t.Context(), path, io.Discard); !errors.Is(err, ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	if _, err := Inspect(t.Context(), path, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Inspect() while it is open: %v", err)
	}
}

func TestInspectRefuses(t *testing.T) {
	whole := written(t)
	other := filepath.Join(t.TempDir(), "other.db")
	change(t, other, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("x"))
		return err
	})
	newer := filepath.Join(t.TempDir(), "newer.db")
	check.OK(t, os.WriteFile(newer, whole, 0o600))
	change(t, newer, func(tx *bolt.Tx) error { return tx.Bucket(buckets[settings]).Put(formatKey, versionKey(format+1)) })
	at := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "data.db")
		check.OK(t, os.WriteFile(path, content, 0o600))
		return path
	}
	for _, tt := range []struct {
		name, path string
		want       error
	}{
		{"empty", at(nil), ErrForeign},
		{"a text", at(bytes.Repeat([]byte("text\n"), 5000)), ErrForeign},
		{"of another program", other, ErrForeign},
		{"of a newer release", newer, ErrNewerFormat},
		{"cut short", at(whole[:len(whole)/2]), ErrCorrupt},
		{"not there", filepath.Join(t.TempDir(), "none"), os.ErrNotExist},
		{"a directory", t.TempDir(), ErrForeign},
	} {
		if _, err := Inspect(t.Context(), tt.path, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: Inspect() = %v, want %v", tt.name, err, tt.want)
		}
		if err := Readable(tt.path); !errors.Is(err, tt.want) {
			t.Errorf("%s: Readable() = %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := Inspect(t.Context(), at(whole), nil); err != nil {
		t.Errorf("a whole file: %v", err)
	}
}

// TestInspectCountsWhatIsNotServed: records that can be decoded, of which a server makes no use.
func TestInspectCountsWhatIsNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	hash, err := secret.NewPasswords(secret.PasswordOptions{}).Hash(t.Context(), "tangerine walrus fence")
	check.OK(t, err)
	check.OK(t, errors.Join(
		s.CreateUser(t.Context(), grants.User{Name: "ada", PasswordHash: hash}),
		s.CreateUser(t.Context(), grants.User{Name: "bob", PasswordHash: "%" + hash[1:]}),
		s.Close(),
	))
	things := store.Table{Name: "things"}
	reopened, err := Open(path, Options{})
	check.OK(t, err)
	_, good := reopened.Put(t.Context(), things, store.Record{Key: "good", Value: []byte("{}")}, store.Seen{})
	_, odd := reopened.Put(t.Context(), things, store.Record{Key: "odd", Value: []byte(`{"a":1}`)}, store.Seen{})
	check.OK(t, errors.Join(good, odd, reopened.Close()))
	sum, err := Inspect(t.Context(), path, Readers{"things": func(r *store.Record) error {
		if len(r.Value) > 2 {
			return store.ErrUnreadable
		}
		return nil
	}})
	check.OK(t, err)
	check.Equal(t, "unreadable", sum.Unreadable, map[string]int{"things": 1, "users": 1})
}

// TestInspectFindsDamage: bytes are changed all over a file. It ends with an error or with a summary, and
// does not take the process down. The file is always the same, as in TestDamagedFile.
func TestInspectFindsDamage(t *testing.T) {
	good := unpack(t, "codes.db.gz")
	noticed, unread := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		damaged := bytes.Clone(good)
		for range 1 + r.IntN(64) {
			damaged[r.IntN(len(damaged))] = byte(r.Uint32())
		}
		path := filepath.Join(t.TempDir(), "data.db")
		check.OK(t, os.WriteFile(path, damaged, 0o600))
		sum, err := Inspect(t.Context(), path, nil)
		switch {
		case err != nil:
			noticed++
		case len(sum.Unreadable) > 0:
			unread++
		}
	}
	t.Logf("of 60 damaged files %d are refused, %d have records that cannot be read", noticed, unread)
	if noticed < 30 {
		t.Errorf("damage was noticed in %d of 60 files", noticed)
	}
}
