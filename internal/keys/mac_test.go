package keys

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
)

// sharedStore is a SharedStore in memory.
type sharedStore struct {
	mu      sync.Mutex
	secrets map[string][]byte
	before  func() // called before each PutShared
}

func (s *sharedStore) Shared(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[name], nil
}

func (s *sharedStore) PutShared(_ context.Context, name string, before, after []byte) error {
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.secrets[name], before) {
		return ErrSharedChanged
	}
	s.secrets[name] = after
	return nil
}

func openTestMAC(t *testing.T, store SharedStore, secrets ...*Secret) (*MAC, error) {
	t.Helper()
	secrets = append(secrets, nil, nil)
	return OpenMAC(t.Context(), store, Secrets{Current: secrets[0], Second: secrets[1]}, slog.New(slog.DiscardHandler))
}

// TestMACIsEncrypted: the key is encrypted with the current secret, even if it was stored in clear
// or with the second secret.
func TestMACIsEncrypted(t *testing.T) {
	store := &sharedStore{secrets: map[string][]byte{}}
	secretOf := func(b byte) *Secret {
		random := make([]byte, MinSecretLength)
		for i := range random {
			random[i] = b + byte(i)
		}
		s, err := newSecret(random)
		check.OK(t, err)
		return s
	}
	first, second, third := secretOf(1), secretOf(2), secretOf(3)
	derive := func(secrets ...*Secret) string {
		m, err := openTestMAC(t, store, secrets...)
		check.OK(t, err)
		return m.Derive("a", "b")
	}
	is := func(want Encryption, current, other *Secret) {
		t.Helper()
		check.Equal(t, "encryption", Secrets{Current: current, Second: other}.Of(macRecord(store.secrets[macName])), want)
	}
	was := derive()
	is(Plain, first, second)
	for _, step := range [][]*Secret{{first}, {first, second}, {second, first}, {second}, {nil, second}} {
		check.Equal(t, "derived", derive(step...), was)
	}
	is(WithCurrent, second, first)
	for name, lost := range map[string]*Secret{"another secret": third, "none": nil} {
		before := derive(second)
		if derive(lost) == before {
			t.Errorf("%s: it is derived with a key that cannot be read", name)
		}
		check.Equal(t, "derived after it was replaced", derive(lost), derive(lost))
	}
}

// TestInstancesShareTheMAC: if several instances make the key at once, one succeeds, and all derive
// the same secrets.
func TestInstancesShareTheMAC(t *testing.T) {
	store := &sharedStore{secrets: map[string][]byte{}}
	var looked, opened sync.WaitGroup
	const instances = 8
	looked.Add(instances)
	store.before = func() { looked.Done(); looked.Wait() } // all have read the missing key
	derived := make([]string, instances)
	for i := range instances {
		opened.Go(func() {
			m, err := openTestMAC(t, store)
			if err != nil {
				t.Error(err)
				return
			}
			derived[i] = m.Derive("a purpose", "a secret")
		})
	}
	opened.Wait()
	for i := range derived {
		check.Equal(t, "derived", derived[i], derived[0])
	}
	again, err := openTestMAC(t, store)
	check.OK(t, err)
	check.Equal(t, "derived after a restart", again.Derive("a purpose", "a secret"), derived[0])
}

func TestDerive(t *testing.T) {
	store := &sharedStore{secrets: map[string][]byte{}}
	m, err := openTestMAC(t, store)
	check.OK(t, err)
	other, err := openTestMAC(t, &sharedStore{secrets: map[string][]byte{}})
	check.OK(t, err)
	got := m.Derive("a", "secret")
	raw, err := base64.RawURLEncoding.DecodeString(got)
	check.OK(t, err)
	check.Equal(t, "bytes", len(raw), 32)
	for name, different := range map[string]string{
		"another key": other.Derive("a", "secret"), "another purpose": m.Derive("b", "secret"),
		"another secret": m.Derive("a", "secret2"), "shifted": m.Derive("a\x00s", "ecret"),
	} {
		if different == got {
			t.Errorf("%s derives the same", name)
		}
	}
}

func TestOpenMACRefuses(t *testing.T) {
	for name, stored := range map[string]string{
		"too short": macMark + "x", "another form": "mac2" + string(make([]byte, 32)), "empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openTestMAC(t, &sharedStore{secrets: map[string][]byte{macName: []byte(stored)}})
			check.ErrorSays(t, err, `shared secret "mac"`)
		})
	}
}

// TestDeriveAtOnce: concurrent derivations do not mix.
func TestDeriveAtOnce(t *testing.T) {
	m, err := openTestMAC(t, &sharedStore{secrets: map[string][]byte{}})
	check.OK(t, err)
	want := map[string]string{}
	for i := range 50 {
		text := strings.Repeat("x", i)
		want[text] = m.Derive("a", text)
	}
	var all sync.WaitGroup
	for text, derived := range want {
		all.Go(func() {
			for range 100 {
				check.Equal(t, "derived from "+text, m.Derive("a", text), derived)
			}
		})
	}
	all.Wait()
}
