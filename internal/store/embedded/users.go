package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
)

type userRecord struct {
	PasswordHash string    `json:"password_hash"`
	CreatedAt    time.Time `json:"created_at"`
}

func decodeUser(name, value []byte) (grants.User, error) {
	var r userRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return grants.User{}, fmt.Errorf("%w: user: %w", ErrCorrupt, err)
	}
	return grants.User{Name: string(name), PasswordHash: r.PasswordHash, CreatedAt: r.CreatedAt}, nil
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
func (s *Store) Users(ctx context.Context) (list []grants.User, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		return tx.Bucket(buckets[users]).ForEach(func(name, value []byte) error {
			u, err := decodeUser(name, value)
			list = append(list, u)
			return err
		})
	})
	return list, err
}

// CreateUser implements [grants.UserRegistry].
func (s *Store) CreateUser(ctx context.Context, u grants.User) error {
	value, err := json.Marshal(userRecord{PasswordHash: u.PasswordHash, CreatedAt: u.CreatedAt})
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

// DeleteUser implements [grants.UserRegistry].
func (s *Store) DeleteUser(ctx context.Context, name string) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(users, []byte(name)) == nil {
			return grants.ErrNotFound
		}
		return w.delete(users, []byte(name))
	})
}
