package keys_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

func repository(t *testing.T) (*keys.Repository, *bolt.Store) {
	t.Helper()
	file, err := bolt.Open(filepath.Join(t.TempDir(), "keys.db"), bolt.Options{})
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, file.Close()) })
	return repositoryOn(t, file), file
}

func repositoryOn(t *testing.T, b store.Backend) *keys.Repository {
	t.Helper()
	f, err := store.NewFollower(t.Context(), b)
	check.OK(t, err)
	return keys.NewRepository(f)
}

// sealed has the form of an encrypted key.
func sealed(content string) []byte { return []byte("enc1" + strings.Repeat(content, 80)) }

func TestRepositoryOfKeys(t *testing.T) {
	r, file := repository(t)
	ctx, noon := t.Context(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	changed, err := r.Changes(ctx)
	check.OK(t, err)
	told := func(want bool) {
		t.Helper()
		select {
		case <-changed:
			check.Equal(t, "told of a change", true, want)
		default:
			check.Equal(t, "told of a change", false, want)
		}
	}
	told(true) // the notification at the start
	k := keys.Record{ID: "k1", Algorithm: keys.ES256, Generation: 1, PrivateKey: sealed("a"), CreatedAt: noon, ActiveFrom: noon.Add(time.Hour)}
	check.OK(t, r.AddKey(ctx, k))
	told(true)
	list, err := r.Keys(ctx)
	check.OK(t, err)
	check.Equal(t, "keys", list, []keys.Record{k})
	check.ErrorIs(t, repositoryOn(t, file).AddKey(ctx, k), keys.ErrExists)
	for _, before := range [][]byte{{1}, nil} {
		check.ErrorIs(t, r.ReplaceKey(ctx, "k1", before, sealed("b")), keys.ErrConflict)
	}
	check.ErrorIs(t, r.ReplaceKey(ctx, "k2", k.PrivateKey, sealed("b")), keys.ErrConflict)
	told(false)
	check.OK(t, r.ReplaceKey(ctx, "k1", k.PrivateKey, sealed("b")))
	told(true)
	check.OK(t, r.DeleteKey(ctx, "k2"))
	check.OK(t, r.DeleteKey(ctx, "k1"))
	list, err = r.Keys(ctx)
	check.OK(t, err)
	check.Equal(t, "keys that are left", len(list), 0)
	told(true)
}

// TestUnreadableKey: a starting ring skips an unreadable key, and a running one keeps using it. No
// ring makes a key in its place, and it can be deleted. If it is the only key, no ring starts.
func TestUnreadableKey(t *testing.T) {
	r, file := repository(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) keys.Options {
		return keys.Options{Issuer: "https://id.example", Now: func() time.Time { return now.Add(after) }}
	}
	const later = 89 * 24 * time.Hour // the second key is made, and starts signing a day later
	_, err := keys.Open(t.Context(), r, at(0))
	check.OK(t, err)
	running, err := keys.Open(t.Context(), r, at(later))
	check.OK(t, err)
	token, err := running.Sign(keys.Claims{Subject: "shop", IssuedAt: now.Add(later + 25*time.Hour)})
	check.OK(t, err)

	damage := func(number int64, key string) {
		t.Helper()
		_, err := file.Append(t.Context(), store.Entry{Number: number, Value: []byte("{}")},
			store.Write{Table: keys.KeysTable, Record: store.Record{Key: key, Value: []byte(`{"kid":7}`)}})
		check.OK(t, err)
	}
	damage(3, "ES256/2")
	if err := running.Maintain(t.Context()); !errors.Is(err, store.ErrUnreadable) || !running.Published(token) {
		t.Errorf("running ring: %v, and its key is published: %v", err, running.Published(token))
	}
	var log bytes.Buffer
	options := at(later + 25*time.Hour)
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	started, err := keys.Open(t.Context(), r, options)
	check.OK(t, err)
	check.Equal(t, "the damaged key is published", started.Published(token), false)
	if !strings.Contains(log.String(), "signing key ES256/2: ") {
		t.Errorf("the log does not name the key: %s", &log)
	}
	list, _ := r.Keys(t.Context())
	check.Equal(t, "keys that can be read", len(list), 1)

	damage(4, "ES256/1")
	_, err = keys.Open(t.Context(), r, options)
	check.ErrorIs(t, err, store.ErrUnreadable)
	check.OK(t, r.DropKey(t.Context(), "ES256/1"))
	check.OK(t, r.DropKey(t.Context(), "ES256/2"))
	_, err = keys.Open(t.Context(), r, options)
	check.OK(t, err)
}

func TestRepositoryOfSecrets(t *testing.T) {
	r, _ := repository(t)
	ctx := t.Context()
	secret, err := r.Shared(ctx, "a")
	check.OK(t, err)
	check.Equal(t, "no secret", secret, nil)
	check.OK(t, r.PutShared(ctx, "a", nil, []byte{1}))
	for _, before := range [][]byte{nil, {2}} {
		check.ErrorIs(t, r.PutShared(ctx, "a", before, []byte{3}), keys.ErrSharedChanged)
	}
	check.OK(t, r.PutShared(ctx, "a", []byte{1}, []byte{4}))
	secret, err = r.Shared(ctx, "a")
	check.OK(t, err)
	check.Equal(t, "secret", secret, []byte{4})
}

// TestCheckRecords has records that neither a ring nor a MAC can open.
func TestCheckRecords(t *testing.T) {
	for _, tt := range []struct {
		check      func(*store.Record) error
		key, value string
		good       bool
	}{
		{keys.CheckKey, "ES256/9", `[`, false},
		{keys.CheckKey, "ES256/9", `{}`, false},
		{keys.CheckKey, "ES256/9", `{"kid":"a","alg":"ES256","generation":9,"activeFrom":"2026-03-01T12:00:00Z"}`, false},
		{keys.CheckKey, "ES256/9", `{"kid":"a","alg":"ES256","generation":9,"activeFrom":"2026-03-01T12:00:00Z","privateKey":"ZW5jMQ=="}`, false},
		{keys.CheckSecret, "mac", `{"secret":"bWFjMQ=="}`, false},
		{keys.CheckSecret, "other", `{"secret":"bWFjMQ=="}`, true},
		{keys.CheckSecret, "other", `{}`, false},
	} {
		err := tt.check(&store.Record{Key: tt.key, Value: []byte(tt.value)})
		check.Equal(t, tt.value, err == nil, tt.good)
	}
}
