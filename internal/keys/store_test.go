package keys

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

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
