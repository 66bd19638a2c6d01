package sharing_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps entries in memory, and fails as the test says.
type fakeStore struct {
	mu      sync.Mutex
	entries map[string]sharing.Entry
	reads   int
	batches []int // sizes of the stored batches
	hangs   bool  // calls end with their context
	err     error
}

func (f *fakeStore) call(ctx context.Context) error {
	f.mu.Lock()
	hangs, err := f.hangs, f.err
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fakeStore) Subject(ctx context.Context, k string) (sharing.Entry, error) {
	err := f.call(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	e, ok := f.entries[k]
	switch {
	case err != nil:
		return sharing.Entry{}, err
	case !ok:
		return e, sharing.ErrNotFound
	}
	return e, nil
}

func (f *fakeStore) PutSubjects(ctx context.Context, entries []sharing.Entry) error {
	err := f.call(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	if f.entries == nil {
		f.entries = map[string]sharing.Entry{}
	}
	f.batches = append(f.batches, len(entries))
	for _, e := range entries {
		f.entries[e.Key] = e
	}
	return nil
}

func (f *fakeStore) become(hangs bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs, f.err = hangs, err
}

var (
	noon    = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	errAway = errors.New("away")
)

const address = "192.0.2.1"

func token(n int) subject.Digest { return subject.DigestOf(fmt.Sprint("token ", n)) }

// instance returns a Subjects that shares through the store, with its own memory.
func instance(store sharing.Store, edits ...func(*sharing.Options)) (*sharing.Subjects, *subject.Memory) {
	memory := subject.NewMemory(0)
	o := sharing.Options{Store: store, Memory: memory}
	for _, edit := range edits {
		edit(&o)
	}
	return sharing.New(o), memory
}

func wantFound(t *testing.T, s *sharing.Subjects, now time.Time, d subject.Digest, clientID, want string) {
	t.Helper()
	got, known := s.Find(t.Context(), now, d, clientID, address)
	check.Equal(t, "user", got, want)
	check.Equal(t, "it is known", known, want != "")
}

// TestAnotherInstanceFinds checks that the same client finds a token until it expires, with one
// read. Afterwards the memory has it.
func TestAnotherInstanceFinds(t *testing.T) {
	store := &fakeStore{}
	one, _ := instance(store)
	other, memory := instance(store)
	one.Put(noon, token(1), "shop", "ada", noon.Add(time.Hour))
	one.Put(noon, token(2), "shop", "bob", time.Time{})
	one.Put(noon, token(3), "shop", "eve", noon.Add(1000*24*time.Hour))
	wantFound(t, other, noon, token(1), "shop", "") // not stored yet
	check.OK(t, one.Flush(t.Context()))
	wantFound(t, other, noon, token(1), "shop", "ada")
	wantFound(t, other, noon, token(1), "shopping", "")
	wantFound(t, other, noon, token(9), "shop", "")
	wantFound(t, other, noon.Add(time.Hour), token(1), "shop", "")
	for _, n := range []int{2, 3} { // with the maximum lifetime
		check.Equal(t, "expires", store.entries[sharing.KeyOf(token(n), "shop")].Expires, noon.Add(subject.DefaultMaxLifetime))
	}
	got, known := memory.Get(noon.Add(time.Hour-time.Second), token(1), "shop")
	check.Equal(t, "user in memory", got, "ada")
	check.Equal(t, "it is in memory", known, true)
	_, known = memory.Get(noon.Add(time.Hour), token(1), "shop")
	check.Equal(t, "it is in memory when it has expired", known, false)
	check.Equal(t, "stats", other.Stats(), sharing.Stats{Found: 1, Unknown: 4})
	check.Equal(t, "stats", one.Stats(), sharing.Stats{Stored: 3})
}

// TestWhatIsNotShared checks that unproven data is not shared.
func TestWhatIsNotShared(t *testing.T) {
	store := &fakeStore{}
	s, _ := instance(store)
	s.Put(noon, subject.Digest{}, "shop", "ada", time.Time{})
	s.Put(noon, token(1), "shop", "", time.Time{})
	s.Put(noon, token(1), "shop", " total", time.Time{})
	check.Equal(t, "waiting", s.Stats().Waiting, 0)
	wantFound(t, s, noon, subject.Digest{}, "shop", "")
	check.Equal(t, "reads", store.reads, 0)
}

// TestNothingOfATokenIsStored checks that neither the token nor its digest is stored. With the
// digest, a stolen token could be recognized elsewhere.
func TestNothingOfATokenIsStored(t *testing.T) {
	d := token(1)
	key := sharing.KeyOf(d, "shop")
	sum, err := base64.RawURLEncoding.DecodeString(key)
	check.OK(t, err)
	check.Equal(t, "the key is of the digest", bytes.Contains(d[:], sum[:8]), false)
	check.Equal(t, "the key of another client", key == sharing.KeyOf(d, "shop2"), false)
	check.Equal(t, "the key again", key, sharing.KeyOf(d, "shop"))
	check.Equal(t, "the digest is as it was", d, token(1))
}

// TestGuessesAreBounded checks the bound on guesses by source and minute, whatever the client.
// Found tokens do not count.
func TestGuessesAreBounded(t *testing.T) {
	store := &fakeStore{}
	s, _ := instance(store)
	s.Put(noon, token(0), "shop", "ada", time.Time{})
	check.OK(t, s.Flush(t.Context()))
	for range 3 * sharing.MaxFruitless {
		wantFound(t, s, noon, token(0), "shop", "ada")
	}
	store.reads = 0
	for n := range 2 * sharing.MaxFruitless {
		wantFound(t, s, noon, token(1+n), fmt.Sprint("client ", n), "")
	}
	check.Equal(t, "reads for one source", store.reads, sharing.MaxFruitless)
	wantFound(t, s, noon, token(0), "shop", "") // its memory is not used here
	check.Equal(t, "skipped", s.Stats().Skipped, sharing.MaxFruitless+1)
	got, _ := s.Find(t.Context(), noon, token(0), "shop", "192.0.2.2")
	check.Equal(t, "user for another source", got, "ada")
	for n := range sharing.MaxFruitless {
		wantFound(t, s, noon.Add(time.Minute), token(0), "shop", "ada")
		wantFound(t, s, noon.Add(time.Minute), token(1+n), "shop", "")
	}
	wantFound(t, s, noon.Add(time.Minute), token(0), "shop", "")
	wantFound(t, s, noon, token(0), "shop", "ada") // the clock was set back
}

// TestSourcesAreBounded checks the memory bound on sources. Sources with tokens that are found need
// no memory.
func TestSourcesAreBounded(t *testing.T) {
	store := &fakeStore{}
	s, _ := instance(store)
	s.Put(noon, token(-1), "shop", "ada", time.Time{})
	check.OK(t, s.Flush(t.Context()))
	for n := range sharing.MaxSources {
		s.Find(t.Context(), noon, token(-1), "shop", fmt.Sprint("known ", n))
	}
	store.reads = 0
	for n := range sharing.MaxSources + 100 {
		s.Find(t.Context(), noon, token(n), "shop", fmt.Sprint("source ", n))
	}
	check.Equal(t, "reads", store.reads, sharing.MaxSources)
}

// TestReadsUnderWay checks the bound on concurrent reads, beyond which users are unknown at once. A
// slow store counts as failing and gets no reads for a second.
func TestReadsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{hangs: true}
		var log bytes.Buffer
		s, _ := instance(store, func(o *sharing.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		began := time.Now()
		var group sync.WaitGroup
		for n := range sharing.MaxReads + 10 {
			group.Go(func() { s.Find(t.Context(), time.Now(), token(n), "shop", fmt.Sprint("source ", n)) })
		}
		group.Wait()
		check.Equal(t, "it took", time.Since(began), sharing.ReadTimeout)
		check.Equal(t, "stats", s.Stats(), sharing.Stats{Failed: sharing.MaxReads, Skipped: 10})
		store.become(false, nil)
		wantFound(t, s, time.Now(), token(1), "shop", "")
		check.Equal(t, "skipped", s.Stats().Skipped, 11)
		time.Sleep(sharing.FailurePause) //nolint:forbidigo // simulated
		wantFound(t, s, time.Now(), token(1), "shop", "")
		check.Equal(t, "unknown", s.Stats().Unknown, 1)
		check.Equal(t, "log lines", strings.Count(log.String(), "\n"), 2) // that it fails, and that it works again
	})
}

// TestHangingUp checks that hanging up does not count as a failure of the store, but as a guess.
func TestHangingUp(t *testing.T) {
	store := &fakeStore{hangs: true}
	s, _ := instance(store)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range sharing.MaxFruitless {
		s.Find(gone, noon, token(n), "shop", address)
	}
	check.Equal(t, "stats", s.Stats(), sharing.Stats{Skipped: sharing.MaxFruitless})
	store.become(false, nil)
	wantFound(t, s, noon, token(1), "shop", "")
	check.Equal(t, "reads of this source", store.reads, sharing.MaxFruitless)
	s.Find(t.Context(), noon, token(1), "shop", "192.0.2.2")
	check.Equal(t, "unknown", s.Stats().Unknown, 1)
}

// TestBatches checks that a batch is bounded and contains each key once, with the last value.
func TestBatches(t *testing.T) {
	store := &fakeStore{}
	s, _ := instance(store)
	for n := range 2*sharing.MaxBatch + 5 {
		s.Put(noon, token(n), "shop", "ada", time.Time{})
	}
	for _, user := range []string{"bob", "eve"} {
		s.Put(noon, token(2*sharing.MaxBatch), "shop", user, time.Time{})
	}
	check.OK(t, s.Flush(t.Context()))
	check.OK(t, s.Flush(t.Context()))
	check.Equal(t, "batches", slices.Equal(store.batches, []int{sharing.MaxBatch, sharing.MaxBatch, 5}), true)
	check.Equal(t, "stored last", store.entries[sharing.KeyOf(token(2*sharing.MaxBatch), "shop")].Subject, "eve")
}

// TestFlushesTakeTurns checks that a Flush that waits for another ends with its context.
func TestFlushesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{hangs: true}
		s, _ := instance(store)
		s.Put(time.Now(), token(1), "shop", "ada", time.Time{})
		var first error
		var group sync.WaitGroup
		group.Go(func() { first = s.Flush(t.Context()) })
		synctest.Wait()
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		check.ErrorIs(t, s.Flush(within), context.DeadlineExceeded, "the second")
		check.Equal(t, "the second took", time.Since(began), time.Second)
		group.Wait()
		check.ErrorIs(t, first, context.DeadlineExceeded, "the first")
		check.Equal(t, "waiting", s.Stats().Waiting, 1)
	})
}

// TestTheOldestMakesRoom checks that the oldest entries are dropped while the store is unavailable,
// without blocking.
func TestTheOldestMakesRoom(t *testing.T) {
	store := &fakeStore{err: errAway}
	s, _ := instance(store, func(o *sharing.Options) { o.MaxWaiting = 3 })
	for n := range 3 {
		s.Put(noon, token(n), "shop", "ada", time.Time{})
	}
	check.ErrorIs(t, s.Flush(t.Context()), errAway, "flush")
	for n := range 2 {
		s.Put(noon, token(3+n), "shop", "ada", time.Time{})
	}
	check.Equal(t, "stats", s.Stats(), sharing.Stats{Waiting: 3, Dropped: 2})
	store.become(false, nil)
	check.OK(t, s.Flush(t.Context()))
	for n := range 5 {
		_, ok := store.entries[sharing.KeyOf(token(n), "shop")]
		check.Equal(t, fmt.Sprintf("token %d is stored", n), ok, n >= 2)
	}
}

// TestGivenUp checks that a batch that the store always refuses does not block later ones. A
// shutdown is not a refusal.
func TestGivenUp(t *testing.T) {
	store := &fakeStore{err: errAway}
	s, _ := instance(store)
	for n := range sharing.MaxBatch + 1 {
		s.Put(noon, token(n), "shop", "ada", time.Time{})
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for range sharing.MaxAttempts {
		check.Equal(t, "it fails", s.Flush(stopped) != nil, true)
	}
	for range sharing.MaxAttempts {
		check.Equal(t, "given up", s.Stats().GivenUp, 0)
		check.ErrorIs(t, s.Flush(t.Context()), errAway, "flush")
	}
	check.Equal(t, "stats", s.Stats(), sharing.Stats{Waiting: 1, GivenUp: sharing.MaxBatch})
	store.become(false, nil)
	check.OK(t, s.Flush(t.Context()))
	check.Equal(t, "stats", s.Stats(), sharing.Stats{Stored: 1, GivenUp: sharing.MaxBatch})
}

// TestConcurrently uses instances concurrently. Run it with -race.
func TestConcurrently(t *testing.T) {
	store := &fakeStore{}
	one, _ := instance(store)
	other, _ := instance(store)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 200 {
				one.Put(noon, token(worker*1000+n), "shop", "ada", time.Time{})
				got, known := other.Find(t.Context(), noon, token(worker*1000+n/2), "shop", fmt.Sprint(worker, n))
				if known && got != "ada" {
					t.Errorf("found %q", got)
				}
				if err := one.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	check.Equal(t, "stats", one.Stats(), sharing.Stats{Stored: 1600})
}
