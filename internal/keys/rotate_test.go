package keys

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/background"
	"oauth-server/internal/check"
)

const day = 24 * time.Hour

// kid returns the ID of the key that signs at that time.
func kid(t *testing.T, r *Ring, at time.Time) string {
	t.Helper()
	return r.current.Load().active(at).record.ID
}

// wantGenerations stops the test unless the store has exactly those generations.
func wantGenerations(t *testing.T, store *memStore, want ...int64) {
	t.Helper()
	check.Equal(t, "generations", store.generations(), want)
}

// wantPublished checks whether the key set contains the text.
func wantPublished(t *testing.T, r *Ring, text string, want bool) {
	t.Helper()
	check.Equal(t, "the key set holds "+text, strings.Contains(string(r.JWKS()), text), want)
}

// wantGood stops the test unless the ring accepts the token at that time.
func wantGood(t *testing.T, r *Ring, token string, at time.Time) {
	t.Helper()
	_, err := r.Verify(token, at)
	check.OK(t, err)
}

func signedAt(t *testing.T, r *Ring, at time.Time) string {
	t.Helper()
	c := testClaims()
	c.IssuedAt, c.ExpiresAt = at, at.Add(time.Hour)
	token, err := r.Sign(c)
	check.OK(t, err)
	return token
}

// TestLifeOfAKey follows the table of the package documentation.
func TestLifeOfAKey(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	first := kid(t, r, start)
	maintain := func(at time.Time) { check.OK(t, r.maintain(t.Context(), at)) }

	maintain(start.Add(89*day - time.Second))
	wantGenerations(t, store, 1)

	ahead := start.Add(89 * day)
	maintain(ahead)
	wantGenerations(t, store, 1, 2) // published a day ahead
	second := r.current.Load().own[0].record.ID
	wantPublished(t, r, first, true)
	wantPublished(t, r, second, true)
	maintain(ahead)
	wantGenerations(t, store, 1, 2) // a second call changes nothing

	change := start.Add(90 * day)
	check.Equal(t, "the key that signs before the change", kid(t, r, change.Add(-time.Nanosecond)), first)
	last := signedAt(t, r, change.Add(-time.Nanosecond))
	check.Equal(t, "the key that signs at the change, without a look at the store", kid(t, r, change), second)

	maintain(change.Add(time.Hour))
	wantGood(t, r, last, change.Add(time.Hour-time.Second-time.Nanosecond))

	maintain(change.Add(time.Hour + 2*time.Minute))
	wantGenerations(t, store, 1, 2)
	maintain(change.Add(time.Hour + 2*time.Minute + time.Nanosecond))
	wantGenerations(t, store, 2)
	wantPublished(t, r, first, false)
}

// TestRotationAfterALongSleep: the server did not run for a year.
func TestRotationAfterALongSleep(t *testing.T) {
	store := &memStore{}
	first := kid(t, openRing(t, store, Options{}), start)
	wake := start.Add(365 * day)
	r := openRing(t, store, Options{Now: func() time.Time { return wake }})
	check.Equal(t, "the key that signs before verifiers can have the next", kid(t, r, wake), first)
	check.Equal(t, "keys", len(r.current.Load().own), 2)
	if got := kid(t, r, wake.Add(day)); got == first {
		t.Errorf("a day later %q still signs", got)
	}
}

// TestAlgorithmChange: the new algorithm signs at once, tokens of the old one stay valid, and the
// old key is deleted eventually.
func TestAlgorithmChange(t *testing.T) {
	store := &memStore{}
	old := signedAt(t, openRing(t, store, Options{Algorithm: ES256}), start)
	r := openRing(t, store, Options{Algorithm: EdDSA})
	wantGood(t, r, old, start)
	wantGood(t, r, signedAt(t, r, start), start)
	wantPublished(t, r, `"alg":"EdDSA"`, true)

	check.OK(t, r.maintain(t.Context(), start.Add(90*day+time.Hour+3*time.Minute)))
	wantPublished(t, r, `"alg":"ES256"`, false)
}

// TestManyInstancesRotateAtOnce opens and rotates in many rings on one store.
func TestManyInstancesRotateAtOnce(t *testing.T) {
	store := &memStore{}
	rings := make([]*Ring, 8)
	var wg sync.WaitGroup
	for i := range rings {
		wg.Go(func() { rings[i] = openRing(t, store, Options{}) })
	}
	wg.Wait()
	wantGenerations(t, store, 1)
	for round := int64(1); round <= 10; round++ {
		now := start.Add(time.Duration(round) * 90 * day)
		for _, r := range rings {
			wg.Go(func() { check.OK(t, r.maintain(t.Context(), now)) })
		}
		wg.Wait()
		generations := store.generations()
		check.Equal(t, "last generations", generations[max(0, len(generations)-2):], []int64{round, round + 1})
		token := signedAt(t, rings[0], now)
		for _, r := range rings {
			wantGood(t, r, token, now)
		}
	}
}

func TestStoreDownKeepsTheKeys(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	store.setDown(true)
	check.ErrorIs(t, r.maintain(t.Context(), start.Add(100*day)), errDown)
	wantGood(t, r, signedAt(t, r, start), start)

	_, err := Open(t.Context(), store, Options{Issuer: issuer})
	check.ErrorIs(t, err, errDown)
}

// TestStoreWithoutItsKeys: an empty store means that its data were lost. The previous keys stay in
// use, no new ones are made, and keys from a restore are used as before.
func TestStoreWithoutItsKeys(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	token, saved := signedAt(t, r, start), slices.Clone(store.records)
	store.records = nil
	for _, look := range []func(context.Context) error{r.Refresh, func(ctx context.Context) error { return r.maintain(ctx, start) }} {
		check.ErrorSays(t, look(t.Context()), "the store has lost all signing keys")
	}
	wantGenerations(t, store)
	wantGood(t, r, token, start)
	store.records = saved
	check.OK(t, r.maintain(t.Context(), start))
	wantGenerations(t, store, 1)
	wantGood(t, r, token, start)
}

// TestDamagedKey: the server does not start with it, and a running one keeps its keys.
func TestDamagedKey(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	store.records = append(store.records, Record{ID: "bad", Algorithm: ES256, Generation: 2, PrivateKey: []byte("???")})
	before := string(r.JWKS())
	if err := r.maintain(t.Context(), start); err == nil {
		t.Error("Maintain() = nil, want an error")
	}
	check.Equal(t, "JWKS", string(r.JWKS()), before)
	_, err := Open(t.Context(), store, Options{Issuer: issuer})
	if err == nil || !strings.Contains(err.Error(), `"bad"`) || strings.Contains(err.Error(), "???") {
		t.Errorf("Open() = %v, want an error that names the key and quotes nothing of it", err)
	}
}

// TestRotationForAYear calls Maintain as often as required, through an outage.
func TestRotationForAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{}
		r, err := Open(t.Context(), store, Options{Issuer: issuer})
		check.OK(t, err)
		loops := background.NewGroup(t.Context(), slog.New(slog.DiscardHandler), nil)
		loops.Repeat(background.Task{Name: "signing keys", Every: time.Hour, Do: r.Maintain})

		time.Sleep(30 * day) //nolint:forbidigo // the clock of synctest
		store.setDown(true)
		time.Sleep(70 * day) //nolint:forbidigo // the clock of synctest
		_, err = r.Verify(signedAt(t, r, time.Now()), time.Now())
		if err != nil {
			t.Errorf("a token signed while the store is down: %v", err)
		}
		wantGenerations(t, store, 1)

		store.setDown(false)
		time.Sleep(265 * day) //nolint:forbidigo // the clock of synctest
		wantGenerations(t, store, 4)
		loops.Cancel()
		loops.Wait()
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("the store is down")

// memStore is an in-memory Store with optional failures.
type memStore struct {
	mu      sync.Mutex
	records []Record
	down    bool
}

func (m *memStore) Keys(context.Context) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, errDown
	}
	return slices.Clone(m.records), nil
}

func (m *memStore) AddKey(_ context.Context, k Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Algorithm == k.Algorithm && r.Generation == k.Generation {
			return ErrExists
		}
	}
	m.records = append(m.records, k)
	return nil
}

func (m *memStore) ReplaceKey(_ context.Context, id string, before, after []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range m.records {
		if r.ID == id && bytes.Equal(r.PrivateKey, before) {
			m.records[i].PrivateKey = after
			return nil
		}
	}
	return ErrConflict
}

func (m *memStore) DeleteKey(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.DeleteFunc(m.records, func(r Record) bool { return r.ID == id })
	return nil
}

func (m *memStore) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memStore) generations() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []int64
	for _, r := range m.records {
		out = append(out, r.Generation)
	}
	return out
}
