package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

type userRecord struct {
	PasswordHash string               `json:"password_hash"`
	CreatedAt    time.Time            `json:"created_at"`
	Stamp        secret.Stamp         `json:"stamp,omitzero"`
	Operator     clientcfg.Access     `json:"operator,omitempty"`
	RowFrom      time.Time            `json:"row_from,omitzero"`
	Known        map[string]time.Time `json:"known,omitempty"`
}

func encodeUser(u *grants.User) ([]byte, error) {
	return json.Marshal(userRecord{
		PasswordHash: u.PasswordHash, CreatedAt: u.CreatedAt, Stamp: u.Stamp, Operator: u.Operator,
		RowFrom: u.RowFrom, Known: u.Known,
	})
}

func decodeUser(name, value []byte) (grants.User, error) {
	var r userRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return grants.User{Name: string(name)}, fmt.Errorf("%w: %w: %w", grants.ErrUnreadableUser, ErrCorrupt, err)
	}
	return grants.User{
		Name: string(name), PasswordHash: r.PasswordHash, CreatedAt: r.CreatedAt, Stamp: r.Stamp, Operator: r.Operator,
		RowFrom: r.RowFrom, Known: r.Known,
	}, nil
}

// User implements [grants.Users].
func (s *Store) User(ctx context.Context, name string) (u grants.User, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		value := get(tx, users, []byte(name))
		if value == nil {
			return grants.ErrNotFound
		}
		u, err = decodeUser([]byte(name), value)
		return err
	})
	return u, err
}

// Users implements [grants.UserRegistry].
func (s *Store) Users(ctx context.Context) (list []grants.StoredUser, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		return tx.Bucket(buckets[users]).ForEach(func(name, value []byte) error {
			u, err := decodeUser(name, value)
			list = append(list, grants.StoredUser{User: u, Err: err})
			return nil
		})
	})
	return list, err
}

// UsersAfter implements [grants.UserRegistry].
func (s *Store) UsersAfter(ctx context.Context, after string, limit int) (list []grants.StoredUser, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		c := tx.Bucket(buckets[users]).Cursor()
		name, value := c.Seek([]byte(after))
		if string(name) == after {
			name, value = c.Next()
		}
		for ; name != nil && len(list) < limit; name, value = c.Next() {
			u, err := decodeUser(name, value)
			list = append(list, grants.StoredUser{User: u, Err: err})
		}
		return nil
	})
	return list, err
}

// CreateUser implements [grants.UserRegistry].
func (s *Store) CreateUser(ctx context.Context, u grants.User) error {
	value, err := encodeUser(&u)
	if err != nil {
		return err
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(users, []byte(u.Name)) != nil {
			return fmt.Errorf("%w: user %s", grants.ErrExists, u.Name)
		}
		return w.put(users, []byte(u.Name), value)
	})
}

// ChangeUser implements [grants.Users].
func (s *Store) ChangeUser(ctx context.Context, name string, change grants.UserChange) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		value := w.get(users, []byte(name))
		if value == nil {
			return grants.ErrNotFound
		}
		u, err := decodeUser([]byte(name), value)
		if err != nil {
			return err
		}
		if change.ReplacesHash != "" && change.ReplacesHash != u.PasswordHash {
			return fmt.Errorf("%w: user %s with that password", grants.ErrNotFound, name)
		}
		applyChange(&u, &change)
		if value, err = encodeUser(&u); err != nil {
			return err
		}
		return w.put(users, []byte(name), value)
	})
}

func applyChange(u *grants.User, change *grants.UserChange) {
	u.PasswordHash = cmp.Or(change.PasswordHash, u.PasswordHash)
	if change.Revoke {
		u.Stamp = u.Stamp.Revoked()
	}
	if change.Operator != nil {
		u.Operator = *change.Operator
	}
	if change.RowFrom.After(u.RowFrom) {
		u.RowFrom = change.RowFrom
	}
	if u.Known == nil {
		u.Known = map[string]time.Time{}
	}
	maps.Copy(u.Known, change.Known)
	for _, address := range change.Forgotten {
		delete(u.Known, address)
	}
}

// DeleteUser implements [grants.UserRegistry].
func (s *Store) DeleteUser(ctx context.Context, name string) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(users, []byte(name)) == nil {
			return grants.ErrNotFound
		}
		return w.delete(users, []byte(name))
	})
}
