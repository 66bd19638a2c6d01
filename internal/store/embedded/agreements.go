package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
)

// agreements is the bucket of what users allow clients, by username and client. The bucket is made with
// its first entry, because files of earlier releases lack it. Such a release leaves it as it is.
var agreements = []byte("agreements")

// agreementsPrefix returns what the keys of a user's agreements begin with.
func agreementsPrefix(username string) []byte { return appendString(nil, username) }

func agreementKey(username, clientID string) []byte {
	return appendString(agreementsPrefix(username), clientID)
}

func encodeAgreement(a *grants.Agreement) []byte {
	b := header(0, a.ExpiresAt)
	b = appendString(appendString(appendString(b, a.Username), a.ClientID), a.ID)
	b = appendStrings(b, a.Scopes)
	b = appendTime(appendTime(b, a.AgreedAt), a.UsedAt)
	b = appendStamp(appendStamp(b, a.ClientStamp), a.UserStamp)
	return binary.AppendUvarint(b, uint64(a.Version)) //nolint:gosec // a count of changes
}

func decodeAgreement(value []byte) (grants.Agreement, error) {
	d, _, expires := open(value)
	a := grants.Agreement{
		ExpiresAt: expires, Username: d.string(), ClientID: d.string(), ID: d.string(), Scopes: d.strings(),
		AgreedAt: d.time(), UsedAt: d.time(), ClientStamp: d.stamp(), UserStamp: d.stamp(),
		Version: int64(d.length()), //nolint:gosec // as encodeAgreement wrote it
	}
	if err := d.finish(); err != nil {
		return grants.Agreement{}, fmt.Errorf("read agreement: %w", err)
	}
	return a, nil
}

// Agreement implements [grants.Agreements].
func (s *Store) Agreement(ctx context.Context, username, clientID string) (a grants.Agreement, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		a, err = findAgreement(tx, agreementKey(username, clientID))
		return err
	})
	return a, err
}

func findAgreement(tx *bolt.Tx, key []byte) (grants.Agreement, error) {
	if b := tx.Bucket(agreements); b != nil {
		if value := b.Get(key); value != nil {
			return decodeAgreement(value)
		}
	}
	return grants.Agreement{}, grants.ErrNotFound
}

// AgreementsOf implements [grants.Agreements]. One that cannot be read is not in it.
func (s *Store) AgreementsOf(ctx context.Context, username string) (list []grants.Agreement, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		return eachAgreement(tx, username, func(_, value []byte) error {
			if a, err := decodeAgreement(value); err == nil {
				list = append(list, a)
			}
			return nil
		})
	})
	slices.SortFunc(list, func(a, b grants.Agreement) int { return strings.Compare(a.ClientID, b.ClientID) })
	return list, err
}

func eachAgreement(tx *bolt.Tx, username string, each func(key, value []byte) error) error {
	b := tx.Bucket(agreements)
	if b == nil {
		return nil
	}
	prefix := agreementsPrefix(username)
	c := b.Cursor()
	for key, value := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, value = c.Next() {
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}

// PutAgreement implements [grants.Agreements].
func (s *Store) PutAgreement(ctx context.Context, a grants.Agreement) error {
	key, value := agreementKey(a.Username, a.ClientID), encodeAgreement(&a)
	return s.writes.do(ctx, func(w *writeTx) error {
		stored, err := findAgreement(w.tx, key)
		switch {
		case errors.Is(err, grants.ErrNotFound) && a.Version == 1:
		case err == nil && a.Version > 1 && stored.ID == a.ID && stored.Version == a.Version-1:
		case err == nil, errors.Is(err, grants.ErrNotFound):
			return grants.ErrExists
		default:
			return err
		}
		b, err := w.tx.CreateBucketIfNotExists(agreements)
		if err == nil {
			err = b.Put(key, value)
		}
		if err != nil {
			return fmt.Errorf("embedded: put into %s: %w", agreements, err)
		}
		w.touched, w.dirty = true, true
		return nil
	})
}

// DeleteAgreement implements [grants.Agreements].
func (s *Store) DeleteAgreement(ctx context.Context, a *grants.Agreement) error {
	key := agreementKey(a.Username, a.ClientID)
	return s.writes.do(ctx, func(w *writeTx) error {
		stored, err := findAgreement(w.tx, key)
		switch {
		case errors.Is(err, grants.ErrNotFound), err == nil && stored.ID != a.ID:
			return nil
		case err != nil:
			return err
		}
		return w.deleteAgreement(key)
	})
}

// deleteAgreement removes what is stored under the key, of a bucket that is there.
func (w *writeTx) deleteAgreement(key []byte) error {
	if err := w.tx.Bucket(agreements).Delete(key); err != nil {
		return fmt.Errorf("embedded: delete from %s: %w", agreements, err)
	}
	w.touched, w.dirty = true, true
	return nil
}

// eraseAgreements removes those of a user, also such as cannot be read.
func (w *writeTx) eraseAgreements(username string) error {
	var keys [][]byte
	err := eachAgreement(w.tx, username, func(key, _ []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	for _, key := range keys {
		err = errors.Join(err, w.deleteAgreement(key))
	}
	return err
}

// sweepAgreements removes agreements that expired before now. Using one moves its end, so there is no
// index of that.
func (s *Store) sweepAgreements(ctx context.Context, now time.Time) (removed int, err error) {
	return s.sweepInParts(ctx, agreements, &s.sweptTo, now)
}
