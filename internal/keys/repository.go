package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/store"
)

// The tables of the signing keys, by algorithm and generation, and of the shared secrets, by name.
// Only [store.Backend.Append] writes KeysTable.
var (
	KeysTable    = store.Table{Name: "keys"}
	SecretsTable = store.Table{Name: "secrets"}
)

// Repository implements [Store] and [SharedStore]. It is safe for concurrent use.
type Repository struct {
	follower *store.Follower
	keys     store.Collection[Record]
	secrets  store.Collection[sharedSecret]
}

// NewRepository returns a Repository that appends key changes through f.
func NewRepository(f *store.Follower) *Repository {
	return &Repository{
		f,
		store.Collection[Record]{Backend: f.Backend(), Table: KeysTable, Encode: encodeKey, Decode: DecodeKey},
		store.Collection[sharedSecret]{Backend: f.Backend(), Table: SecretsTable, Encode: encodeSecret, Decode: decodeSecret},
	}
}

// Changes returns a channel that receives a value after keys were added, replaced or deleted.
func (s *Repository) Changes(ctx context.Context) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a notification is already pending
		}
	}
	return changed, s.follower.Subscribe(ctx, store.Subscriber{
		Table:  KeysTable,
		Reload: func(context.Context, store.Mark) error { notify(); return nil },
		Apply: func(_ context.Context, b store.Batch) {
			if len(b.Changed)+len(b.Deleted) > 0 {
				notify()
			}
		},
	})
}

// Keys implements [Store].
func (s *Repository) Keys(ctx context.Context) (list []Record, err error) {
	all, failed := s.keys, error(nil)
	all.Skipped = func(_, key string, err error) {
		failed = errors.Join(failed, fmt.Errorf("signing key %s: %w", key, err))
		s.keys.Report(key, err)
	}
	err = all.List(ctx, store.Query{}, func(k Record, _ store.Seen) error {
		list = append(list, k)
		return nil
	})
	return list, errors.Join(err, failed)
}

// AddKey implements [Store].
func (s *Repository) AddKey(ctx context.Context, k Record) error {
	return s.append(ctx, func() (store.Write, error) {
		switch _, _, err := s.keys.Get(ctx, keyOf(&k)); {
		case err == nil:
			return store.Write{}, ErrExists
		case !errors.Is(err, store.ErrNotFound):
			return store.Write{}, err
		}
		return s.keys.Write(&k)
	})
}

// ReplaceKey implements [Store].
func (s *Repository) ReplaceKey(ctx context.Context, id string, before, after []byte) error {
	return s.append(ctx, func() (store.Write, error) {
		k, err := s.named(ctx, id)
		switch {
		case err != nil:
			return store.Write{}, err
		case k == nil || !bytes.Equal(k.PrivateKey, before):
			return store.Write{}, ErrConflict
		}
		k.PrivateKey = after
		return s.keys.Write(k)
	})
}

// errGone means that there is no such key.
var errGone = errors.New("keys: key not found")

// DeleteKey implements [Store].
func (s *Repository) DeleteKey(ctx context.Context, id string) error {
	err := s.append(ctx, func() (store.Write, error) {
		k, err := s.named(ctx, id)
		if err == nil && k == nil {
			err = errGone
		}
		if err != nil {
			return store.Write{}, err
		}
		return store.Write{Table: KeysTable, Record: store.Record{Key: keyOf(k)}, Delete: true}, nil
	})
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// DropKey removes the record of an unreadable key, by its record key in [KeysTable].
func (s *Repository) DropKey(ctx context.Context, key string) error {
	return s.append(ctx, func() (store.Write, error) {
		return store.Write{Table: KeysTable, Record: store.Record{Key: key}, Delete: true}, nil
	})
}

// named returns the key with that ID, or nil.
func (s *Repository) named(ctx context.Context, id string) (*Record, error) {
	list, err := s.Keys(ctx)
	for i := range list {
		if list[i].ID == id {
			return &list[i], nil // even if other keys cannot be read
		}
	}
	return nil, err
}

// append appends an entry that is not shown in the audit trail.
func (s *Repository) append(ctx context.Context, write func() (store.Write, error)) error {
	_, err := s.follower.Append(ctx, func(int64) (store.Entry, []store.Write, error) {
		w, err := write()
		return store.Entry{At: time.Now(), Value: []byte("{}")}, []store.Write{w}, err
	})
	return err
}

func keyOf(k *Record) string { return fmt.Sprintf("%s/%d", k.Algorithm, k.Generation) }

func encodeKey(k *Record) (store.Record, error) {
	doc := *k
	doc.CreatedAt, doc.ActiveFrom = k.CreatedAt.UTC(), k.ActiveFrom.UTC()
	value, err := json.Marshal(doc) //nolint:gosec // the store is where private keys are kept
	return store.Record{Key: keyOf(k), Value: value}, err
}

// DecodeKey returns the key in a record of [KeysTable]. It checks only the form of encrypted keys.
func DecodeKey(r *store.Record) (Record, error) {
	var k Record
	err := store.Unmarshal(r, &k)
	switch {
	case err != nil:
	case k.ID == "" || k.ActiveFrom.IsZero() || keyOf(&k) != r.Key:
		err = errors.New("kid, alg, generation or activeFrom is missing or wrong")
	default:
		err = CheckRecord(k)
	}
	return k, err
}

// sharedSecret is a secret of [SharedStore].
type sharedSecret struct {
	name  string
	value []byte
}

type secretDoc struct {
	Secret []byte `json:"secret"`
}

func encodeSecret(s *sharedSecret) (store.Record, error) {
	value, err := json.Marshal(secretDoc{s.value}) //nolint:gosec // as private keys
	return store.Record{Key: s.name, Value: value}, err
}

func decodeSecret(r *store.Record) (sharedSecret, error) {
	var doc secretDoc
	err := store.Unmarshal(r, &doc)
	if err == nil && len(doc.Secret) == 0 {
		err = errors.New("its secret is missing")
	}
	return sharedSecret{r.Key, doc.Secret}, err
}

// Shared implements [SharedStore].
func (s *Repository) Shared(ctx context.Context, name string) ([]byte, error) {
	stored, _, err := s.secrets.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return stored.value, err
}

// PutShared implements [SharedStore].
func (s *Repository) PutShared(ctx context.Context, name string, before, after []byte) error {
	stored, seen, err := s.secrets.Get(ctx, name)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case (err == nil) != (before != nil) || !bytes.Equal(stored.value, before):
		return ErrSharedChanged
	}
	_, err = s.secrets.Put(ctx, &sharedSecret{name, after}, seen)
	if errors.Is(err, store.ErrConflict) {
		return ErrSharedChanged
	}
	return err
}

// CheckKey returns why a record of [KeysTable] cannot be used, or nil.
var CheckKey = store.Readable(DecodeKey)

// CheckSecret returns why a record of [SecretsTable] cannot be used, or nil.
var CheckSecret = store.Readable(func(r *store.Record) (sharedSecret, error) {
	s, err := decodeSecret(r)
	if err == nil && s.name == macName {
		err = CheckMAC(s.value)
	}
	return s, err
})
