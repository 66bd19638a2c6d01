package keys

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/background"
)

const day = 24 * time.Hour

// kid is the key that a token of that time is signed with.
func kid(t *testing.T, r *Ring, at time.Time) string {
	t.Helper()
	return r.current.Load().active(at).record.ID
}

func signedAt(t *testing.T, r *Ring, at time.Time) string {
	t.Helper()
	c := testClaims()
	c.IssuedAt, c.ExpiresAt = at, at.Add(time.Hour)
	token, err := r.Sign(c)
	require.NoError(t, err)
	return token
}

// TestLifeOfAKey follows the table of the package documentation.
func TestLifeOfAKey(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	first := kid(t, r, start)
	maintain := func(at time.Time) { require.NoError(t, r.maintain(t.Context(), at)) }

	maintain(start.Add(89*day - time.Second))
	require.Equal(t, []int64{1}, store.generations())

	ahead := start.Add(89 * day)
	maintain(ahead)
	require.Equal(t, []int64{1, 2}, store.generations(), "published a day ahead")
	second := r.current.Load().own[0].record.ID
	require.Contains(t, string(r.JWKS()), first)
	require.Contains(t, string(r.JWKS()), second)
	maintain(ahead)
	require.Equal(t, []int64{1, 2}, store.generations(), "once is enough")

	change := start.Add(90 * day)
	require.Equal(t, first, kid(t, r, change.Add(-time.Nanosecond)))
	last := signedAt(t, r, change.Add(-time.Nanosecond))
	require.Equal(t, second, kid(t, r, change), "the change needs no check of the store")

	maintain(change.Add(time.Hour))
	_, err := r.Verify(last, change.Add(time.Hour-time.Second-time.Nanosecond))
	require.NoError(t, err, "to its last second, the last token of the old key is good")

	maintain(change.Add(time.Hour + 2*time.Minute))
	require.Equal(t, []int64{1, 2}, store.generations())
	maintain(change.Add(time.Hour + 2*time.Minute + time.Nanosecond))
	require.Equal(t, []int64{2}, store.generations())
	require.NotContains(t, string(r.JWKS()), first)
}

// TestRotationAfterALongSleep: the server was off for a year.
func TestRotationAfterALongSleep(t *testing.T) {
	store := &memStore{}
	first := kid(t, openRing(t, store, Options{}), start)
	wake := start.Add(365 * day)
	r := openRing(t, store, Options{Now: func() time.Time { return wake }})
	require.Equal(t, first, kid(t, r, wake), "nobody has the new key yet")
	require.Len(t, r.current.Load().own, 2)
	require.NotEqual(t, first, kid(t, r, wake.Add(day)))
}

func TestReopenKeepsTheKey(t *testing.T) {
	store := &memStore{}
	token := signedAt(t, openRing(t, store, Options{}), start)
	again := openRing(t, store, Options{})
	_, err := again.Verify(token, start)
	require.NoError(t, err)
}

// TestAlgorithmChange: the new algorithm signs at once, tokens of the old one
// stay good, and its key goes in the end.
func TestAlgorithmChange(t *testing.T) {
	store := &memStore{}
	old := signedAt(t, openRing(t, store, Options{Algorithm: ES256}), start)
	r := openRing(t, store, Options{Algorithm: EdDSA})
	_, err := r.Verify(old, start)
	require.NoError(t, err)
	_, err = r.Verify(signedAt(t, r, start), start)
	require.NoError(t, err)
	require.Contains(t, string(r.JWKS()), `"alg":"EdDSA"`)

	require.NoError(t, r.maintain(t.Context(), start.Add(90*day+time.Hour+3*time.Minute)))
	require.NotContains(t, string(r.JWKS()), `"alg":"ES256"`)
}

// TestManyInstancesRotateAtOnce opens and rotates in many rings on one store.
func TestManyInstancesRotateAtOnce(t *testing.T) {
	store := &memStore{}
	rings := make([]*Ring, 8)
	var wg sync.WaitGroup
	for i := range rings {
		wg.Go(func() {
			r, err := Open(t.Context(), store, Options{Issuer: issuer, Now: func() time.Time { return start }})
			if err != nil {
				t.Error(err)
			}
			rings[i] = r
		})
	}
	wg.Wait()
	require.Equal(t, []int64{1}, store.generations())
	for round := int64(1); round <= 10; round++ {
		now := start.Add(time.Duration(round) * 90 * day)
		for _, r := range rings {
			wg.Go(func() {
				if err := r.maintain(t.Context(), now); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, []int64{round, round + 1}, store.generations()[max(0, len(store.generations())-2):])
		token := signedAt(t, rings[0], now)
		for _, r := range rings {
			_, err := r.Verify(token, now)
			require.NoError(t, err)
		}
	}
}

func TestStoreDownKeepsTheKeys(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	store.setDown(true)
	require.ErrorIs(t, r.maintain(t.Context(), start.Add(100*day)), errDown)
	_, err := r.Verify(signedAt(t, r, start), start)
	require.NoError(t, err)

	_, err = Open(t.Context(), store, Options{Issuer: issuer})
	require.ErrorIs(t, err, errDown)
}

// TestDamagedKey: the server does not start with it, and while it runs it
// stays with what it has.
func TestDamagedKey(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	store.records = append(store.records, Record{ID: "bad", Algorithm: ES256, Generation: 2, PrivateKey: []byte("???")})
	before := string(r.JWKS())
	require.Error(t, r.maintain(t.Context(), start))
	require.Equal(t, before, string(r.JWKS()))
	_, err := Open(t.Context(), store, Options{Issuer: issuer})
	require.ErrorContains(t, err, `"bad"`)
	require.NotContains(t, err.Error(), "???")
}

// TestRotationForAYear maintains the ring as often as it asks for, through an outage.
func TestRotationForAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{}
		r, err := Open(t.Context(), store, Options{Issuer: issuer, CheckEvery: time.Hour})
		require.NoError(t, err)
		loops := background.NewGroup(t.Context(), slog.New(slog.DiscardHandler), nil)
		loops.Repeat(background.Task{Name: "signing keys", Every: r.CheckEvery(), Do: r.Maintain})

		time.Sleep(30 * day) //nolint:forbidigo // the clock of synctest
		store.setDown(true)
		time.Sleep(70 * day) //nolint:forbidigo // the clock of synctest
		_, err = r.Verify(signedAt(t, r, time.Now()), time.Now())
		require.NoError(t, err, "signing goes on while the store is down")
		require.Equal(t, []int64{1}, store.generations())

		store.setDown(false)
		time.Sleep(265 * day) //nolint:forbidigo // the clock of synctest
		require.Equal(t, []int64{4}, store.generations())
		loops.Cancel()
		loops.Wait()
	})
}

func TestOptionsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		opts Options
		want string
	}{
		"no issuer":                {Options{}, "issuer"},
		"unknown algorithm":        {Options{Issuer: issuer, Algorithm: "HS256"}, "HS256"},
		"published ahead too long": {Options{Issuer: issuer, RotateEvery: time.Hour, PublishAhead: time.Hour}, "1h0m0s"},
		"negative token lifetime":  {Options{Issuer: issuer, TokenLifetime: -1}, "lifetime"},
		"negative rotation":        {Options{Issuer: issuer, RotateEvery: -1}, "ahead"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), &memStore{}, tc.opts)
			require.ErrorContains(t, err, tc.want)
			require.False(t, strings.Contains(err.Error(), "read"), "before the store is touched")
		})
	}
}
