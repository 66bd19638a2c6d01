package grants

import (
	"context"
	"sync"
	"time"

	"oauth-server/internal/secret"
)

// memStore is a Store in memory.
type memStore struct {
	mu       sync.Mutex
	codes    map[secret.Digest]Code
	refresh  map[secret.Digest]RefreshToken
	revoked  map[string]time.Time
	users    map[string]User
	sessions map[secret.Digest]Session
}

func newMemStore() *memStore {
	return &memStore{
		codes: map[secret.Digest]Code{}, refresh: map[secret.Digest]RefreshToken{},
		revoked: map[string]time.Time{}, users: map[string]User{}, sessions: map[secret.Digest]Session{},
	}
}

func get[K comparable, V any](m *memStore, from map[K]V, k K) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := from[k]
	if !ok {
		return v, ErrNotFound
	}
	return v, nil
}

func create[K comparable, V any](m *memStore, in map[K]V, k K, v V) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := in[k]; taken {
		return ErrExists
	}
	in[k] = v
	return nil
}

func (m *memStore) CreateCode(_ context.Context, c Code) error {
	return create(m, m.codes, c.Digest, c)
}

func (m *memStore) Code(_ context.Context, d secret.Digest) (Code, error) { return get(m, m.codes, d) }

func (m *memStore) RedeemCode(_ context.Context, d secret.Digest, next *RefreshToken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.codes[d]
	if !ok {
		return ErrNotFound
	}
	if c.Claimed {
		return ErrClaimed
	}
	c.Claimed = true
	m.codes[d] = c
	if next != nil {
		m.refresh[next.Digest] = *next
	}
	return nil
}

func (m *memStore) CreateRefreshToken(_ context.Context, t RefreshToken) error {
	return create(m, m.refresh, t.Digest, t)
}

func (m *memStore) RefreshToken(_ context.Context, d secret.Digest) (RefreshToken, error) {
	return get(m, m.refresh, d)
}

func (m *memStore) RotateRefreshToken(_ context.Context, d secret.Digest, next RefreshToken) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.refresh[d]
	if !ok {
		return ErrNotFound
	}
	if t.Claimed {
		return ErrClaimed
	}
	t.Claimed = true
	m.refresh[d] = t
	m.refresh[next.Digest] = next
	return nil
}

func (m *memStore) Revoke(_ context.Context, name string, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until.After(m.revoked[name]) {
		m.revoked[name] = until
	}
	return nil
}

func (m *memStore) Revoked(_ context.Context, names ...string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		if _, ok := m.revoked[n]; ok {
			return true, nil
		}
	}
	return false, nil
}

func (m *memStore) User(_ context.Context, name string) (User, error) { return get(m, m.users, name) }

func (m *memStore) CreateUser(_ context.Context, u User) error { return create(m, m.users, u.Name, u) }

func (m *memStore) DeleteUser(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.users, name)
	return nil
}

func (m *memStore) CreateSession(_ context.Context, s Session) error {
	return create(m, m.sessions, s.Digest, s)
}

func (m *memStore) Session(_ context.Context, d secret.Digest) (Session, error) {
	return get(m, m.sessions, d)
}

func (m *memStore) DeleteSession(_ context.Context, d secret.Digest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, d)
	return nil
}
