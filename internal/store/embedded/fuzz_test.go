package embedded

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// survives checks that a record which is read from value is written so that it reads back the same,
// and that a record which cannot be read is reported as damage.
func survives[T any](t *testing.T, value []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	got, err := decode(value)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
		return
	}
	if encode == nil {
		return
	}
	written, err := encode(got)
	if err != nil {
		return
	}
	again, err := decode(written)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("it does not survive: %v\n%s", err, cmp.Diff(got, again))
	}
}

// FuzzDecode: every kind of record.
func FuzzDecode(f *testing.F) {
	code, family := benchCode(time.Now()), benchFamily(time.Now())
	f.Add(encodeCode(&code))
	f.Add(encodeFamily(&family))
	f.Add(encodeSession(&grants.Session{Username: "u"}))
	f.Add([]byte{recordVersion})
	f.Add([]byte(`{"password_hash":"$argon2id$","created_at":"2026-01-01T00:00:00Z"}`))
	f.Add(encodeCounter(&counter{writers: map[string]int64{"a": 1}, frames: map[int64]int64{1: 2}}))
	f.Add(encodeCounter(&counter{version: 2, etag: 3, frame: 60_000, pruned: 4, writers: map[string]int64{"a": 1}}))
	digest := secret.DigestOf("x")
	f.Fuzz(func(t *testing.T, value []byte) {
		survives(t, value, func(b []byte) (grants.Code, error) { return decodeCode(digest, b) },
			func(c grants.Code) ([]byte, error) { return encodeCode(&c), nil })
		survives(t, value, func(b []byte) (grants.Family, error) { return decodeFamily(digest, b) },
			func(f grants.Family) ([]byte, error) { return encodeFamily(&f), nil })
		survives(t, value, func(b []byte) (grants.Session, error) { return decodeSession(digest, b) },
			func(s grants.Session) ([]byte, error) { return encodeSession(&s), nil })
		survives(t, value, decodeCounter, func(c *counter) ([]byte, error) { return encodeCounter(c), nil })
		// The JSON records; encoding/json reads back what it writes.
		if _, err := decodeUser([]byte("ada"), value); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
	})
}

// FuzzKeys: the keys of the expiry index hold what they are read as, byte for byte.
func FuzzKeys(f *testing.F) {
	p := place{kind: codes, digest: secret.DigestOf("x")}
	f.Add(expiryKey(p, time.Now()))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, key []byte) {
		if p, err := parseExpiryKey(key); err == nil {
			if written := append(append(bytes.Clone(key[:8]), byte(p.kind)), p.digest[:]...); !bytes.Equal(key, written) {
				t.Errorf("the key %x is read as %+v", key, p)
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
	})
}
