package keys

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// newTestSecret returns a random secret.
func newTestSecret(t *testing.T) *Secret {
	t.Helper()
	random := make([]byte, MinSecretLength)
	_, err := rand.Read(random)
	check.OK(t, err)
	s, err := ParseSecret(base64.StdEncoding.EncodeToString(random))
	check.OK(t, err)
	return s
}

// stored returns the records as they are in the store.
func (m *memStore) stored() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// holdsPKCS8 reports whether the bytes are an unencrypted private key.
func holdsPKCS8(b []byte) bool {
	_, err := x509.ParsePKCS8PrivateKey(b)
	return err == nil
}

func wantEncryption(t *testing.T, store *memStore, s Secrets, want ...Encryption) {
	t.Helper()
	var got []Encryption
	for _, r := range store.stored() {
		got = append(got, s.Of(r))
		check.Equal(t, r.ID+" is readable by anyone", holdsPKCS8(r.PrivateKey), s.Of(r) == Plain)
	}
	check.Equal(t, "encryption", got, want)
}

func TestParseSecret(t *testing.T) {
	random := bytes.Repeat([]byte("\xfb\xff\xfe0123456789abcdefghijklmnopqrs"), 1)
	std := base64.StdEncoding.EncodeToString(random)
	first, err := ParseSecret(std)
	check.OK(t, err)
	for name, text := range map[string]string{
		"without padding": strings.TrimRight(std, "="),
		"URL alphabet":    base64.URLEncoding.EncodeToString(random),
		"line ending":     std + "\r\n",
	} {
		if s, err := ParseSecret(text); err != nil || !s.Same(first) {
			t.Errorf("%s: %v, want the same secret", name, err)
		}
	}
	_, err = ParseSecret(base64.StdEncoding.EncodeToString(append(random, random...)))
	check.OK(t, err, "64 bytes")
	for name, text := range map[string]string{
		"empty":        "",
		"31 bytes":     base64.StdEncoding.EncodeToString(random[:31]),
		"not base64":   "correct horse battery staple, correct horse battery staple",
		"no entropy":   base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"little of it": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789"), 4)),
	} {
		_, err := ParseSecret(text)
		switch {
		case err == nil:
			t.Errorf("%s is accepted", name)
		case text != "" && strings.Contains(err.Error(), text):
			t.Errorf("%s: the error quotes the secret: %v", name, err)
		}
	}
}

// Attack (keys): Reading keys in the database. `keys.secret` encrypts them. Encryption and a
// change of the secret need no downtime. Also keys.TestSecretIsChanged.
func TestKeysAreEncryptedInTheStore(t *testing.T) {
	for _, alg := range Algorithms() {
		t.Run(string(alg), func(t *testing.T) {
			store, s := &memStore{}, Secrets{Current: newTestSecret(t)}
			r := openRing(t, store, Options{Algorithm: alg, Secrets: s})
			wantEncryption(t, store, s, WithCurrent)
			token := signedAt(t, r, start)
			again := openRing(t, store, Options{Algorithm: alg, Secrets: s})
			wantGood(t, again, token, start)
		})
	}
}

// TestUnreadableKeys: whatever the reason, the server does not start and makes no new key.
//
// Attack (keys): Damaged or swapped key records. The server does not start, and makes no new
// key. Also cli.TestServerWithoutItsSecretDoesNotStart.
func TestUnreadableKeys(t *testing.T) {
	secret, other := newTestSecret(t), newTestSecret(t)
	two := func(t *testing.T) *memStore { // two keys encrypted with the same secret
		t.Helper()
		store := &memStore{}
		openRing(t, store, Options{Secrets: Secrets{Current: secret}})
		openRing(t, store, Options{Secrets: Secrets{Current: secret}, Now: func() time.Time { return start.Add(89 * day) }})
		return store
	}
	flip := func(at int) func([]Record) {
		return func(rs []Record) {
			b := bytes.Clone(rs[0].PrivateKey)
			b[(at+len(b))%len(b)] ^= 1
			rs[0].PrivateKey = b
		}
	}
	none := func([]Record) {}
	for name, tc := range map[string]struct {
		edit    func([]Record)
		secrets Secrets
		want    error
	}{
		"no secret":            {none, Secrets{}, ErrNoSecret},
		"another secret":       {none, Secrets{Current: other}, ErrOtherSecret},
		"another as second":    {none, Secrets{Second: other}, ErrOtherSecret},
		"tag changed":          {flip(-1), Secrets{Current: secret}, ErrDamaged},
		"ciphertext changed":   {flip(40), Secrets{Current: secret}, ErrDamaged},
		"nonce changed":        {flip(12), Secrets{Current: secret}, ErrDamaged},
		"id of secret changed": {flip(4), Secrets{Current: secret}, ErrOtherSecret},
		"version changed":      {flip(3), Secrets{Current: secret}, ErrOtherSecret},
		"mark changed":         {flip(0), Secrets{Current: secret}, nil}, // neither envelope nor PKCS #8
		"cut in the nonce":     {func(rs []Record) { rs[0].PrivateKey = rs[0].PrivateKey[:15] }, Secrets{Current: secret}, ErrDamaged},
		"cut in the id":        {func(rs []Record) { rs[0].PrivateKey = rs[0].PrivateKey[:6] }, Secrets{Current: secret}, ErrOtherSecret},
		"that of another kid":  {func(rs []Record) { rs[0].PrivateKey = rs[1].PrivateKey }, Secrets{Current: secret}, ErrDamaged},
		"another algorithm":    {func(rs []Record) { rs[0].Algorithm = EdDSA }, Secrets{Current: secret}, ErrDamaged},
		"another generation":   {func(rs []Record) { rs[0].Generation = 3 }, Secrets{Current: secret}, ErrDamaged},
		"kids swapped":         {func(rs []Record) { rs[0].ID, rs[1].ID = rs[1].ID, rs[0].ID }, Secrets{Current: secret}, ErrDamaged},
		"two ciphertexts, swapped": {func(rs []Record) {
			rs[0].PrivateKey, rs[1].PrivateKey = rs[1].PrivateKey, rs[0].PrivateKey
		}, Secrets{Current: secret}, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			store := two(t)
			tc.edit(store.records)
			before := store.stored()
			_, err := Open(t.Context(), store, Options{Issuer: issuer, Secrets: tc.secrets})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("Open() = %v, want %v", err, tc.want)
			}
			check.Equal(t, "the store has changed", store.stored(), before)
		})
	}
}

// TestPlainKeysAreEncryptedWhileTwoInstancesRun: one of them has no secret yet.
func TestPlainKeysAreEncryptedWhileTwoInstancesRun(t *testing.T) {
	store, s := &memStore{}, Secrets{Current: newTestSecret(t)}
	old := openRing(t, store, Options{})
	wantEncryption(t, store, s, Plain)
	check.Equal(t, "InClear()", old.InClear(), []string{kid(t, old, start)})
	var log strings.Builder
	next := openRing(t, store, Options{Secrets: s, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	wantEncryption(t, store, s, WithCurrent)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), kid(t, old, start)) {
		t.Errorf("no warning names the key:\n%s", log.String())
	}
	for name, refresh := range map[string]func() error{
		"old: refresh": func() error { return old.Refresh(t.Context()) }, "old: maintain": func() error { return old.Maintain(t.Context()) },
		"next: refresh": func() error { return next.Refresh(t.Context()) }, "next: maintain": func() error { return next.Maintain(t.Context()) },
	} {
		check.OK(t, refresh(), name)
	}
	for _, pair := range [][2]*Ring{{old, next}, {next, old}} {
		wantGood(t, pair[1], signedAt(t, pair[0], start), start)
	}
	check.Equal(t, "InClear() after the next refresh", next.InClear(), nil)
	check.OK(t, old.maintain(t.Context(), start.Add(89*day)))
	wantEncryption(t, store, s, WithCurrent, Plain)
	check.OK(t, next.maintain(t.Context(), start.Add(89*day)))
	wantEncryption(t, store, s, WithCurrent, WithCurrent)
}

// TestSecretIsChanged follows the three steps of docs/operating.md. In each step, instances of
// two steps run together, and either may restart.
func TestSecretIsChanged(t *testing.T) {
	store, first, second := &memStore{}, newTestSecret(t), newTestSecret(t)
	token := signedAt(t, openRing(t, store, Options{}), start)
	steps := []Secrets{
		{}, {Second: first}, {Current: first}, // the first secret, in two steps
		{Current: first, Second: second}, {Current: second, Second: first}, {Current: second}, // another, in three
	}
	var before *Ring
	for i, s := range steps {
		next := openRing(t, store, Options{Secrets: s})
		if i > 0 {
			before = openRing(t, store, Options{Secrets: steps[i-1]}) // restarts, and is the last to write
		}
		for _, r := range []*Ring{before, next} {
			if r == nil {
				continue
			}
			check.OK(t, errors.Join(r.Refresh(t.Context()), r.Maintain(t.Context())), fmt.Sprint("step ", i))
			wantGood(t, r, token, start)
		}
		if s.Current != nil {
			wantEncryption(t, store, s, WithCurrent)
		}
	}
}

// TestManyInstancesEncryptAtOnce: one of them succeeds, and all continue.
func TestManyInstancesEncryptAtOnce(t *testing.T) {
	store, s := &memStore{}, Secrets{Current: newTestSecret(t)}
	token := signedAt(t, openRing(t, store, Options{}), start)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { wantGood(t, openRing(t, store, Options{Secrets: s}), token, start) })
	}
	all.Wait()
	wantEncryption(t, store, s, WithCurrent)
}
