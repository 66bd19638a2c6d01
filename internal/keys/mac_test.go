package keys

import (
	"bytes"
	"context"
	"encoding/base64"
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

// TestInstancesShareTheMAC: of instances that make the key at once one wins, and all derive the same.
func TestInstancesShareTheMAC(t *testing.T) {
	store := &sharedStore{secrets: map[string][]byte{}}
	var looked, opened sync.WaitGroup
	const instances = 8
	looked.Add(instances)
	store.before = func() { looked.Done(); looked.Wait() } // all have found none
	derived := make([]string, instances)
	for i := range instances {
		opened.Go(func() {
			m, err := OpenMAC(t.Context(), store)
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
	again, err := OpenMAC(t.Context(), store)
	check.OK(t, err)
	check.Equal(t, "derived after a restart", again.Derive("a purpose", "a secret"), derived[0])
}

func TestDerive(t *testing.T) {
	store := &sharedStore{secrets: map[string][]byte{}}
	m, err := OpenMAC(t.Context(), store)
	check.OK(t, err)
	other, err := OpenMAC(t.Context(), &sharedStore{secrets: map[string][]byte{}})
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
		"too short": macMark + "x", "another form": "enc1" + string(make([]byte, 60)), "empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenMAC(t.Context(), &sharedStore{secrets: map[string][]byte{macName: []byte(stored)}})
			check.ErrorSays(t, err, `shared secret "mac"`)
		})
	}
}
