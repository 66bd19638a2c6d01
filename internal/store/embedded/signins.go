package embedded

import (
	"bytes"
	"context"
	"slices"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// SessionsOf implements [grants.SignIns]. Sessions of releases that kept no index are not in it, nor are
// those that cannot be read.
func (s *Store) SessionsOf(ctx context.Context, username string) (list []grants.Session, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		index := tx.Bucket(userSessions)
		if index == nil {
			return nil
		}
		user, c := secret.DigestOf(username), index.Cursor()
		for key, _ := c.Seek(user[:]); bytes.HasPrefix(key, user[:]); key, _ = c.Next() {
			if len(key) != userSessionKeySize {
				continue
			}
			digest := secret.Digest(key[userSessionKeySize-len(user):])
			value := get(tx, sessions, digest[:])
			if value == nil { // signed out with an earlier release
				continue
			}
			if session, err := decodeSession(digest, value); err == nil {
				list = append(list, session)
			}
		}
		return nil
	})
	slices.Reverse(list)
	return list, err
}

// familiesAtOnce bounds how many records one transaction reads: while it runs, pages that writers free
// cannot be used again.
const familiesAtOnce = 1000

// FamiliesOf implements [grants.SignIns]. There is no index by user, so it reads all refresh tokens.
func (s *Store) FamiliesOf(ctx context.Context, username string, each func([]grants.Family) error) error {
	for next, done := []byte(nil), false; !done; {
		var some []grants.Family
		err := s.view(ctx, func(tx *bolt.Tx) error {
			c := tx.Bucket(buckets[refreshTokens]).Cursor()
			key, value := c.Seek(next)
			for read := 0; key != nil && read < familiesAtOnce; read++ {
				// Among them are tokens of earlier releases, which do not decode as a family.
				if f, err := decodeFamily(secret.Digest{}, value); err == nil && f.Username == username && f.Family != "" {
					some = append(some, f)
				}
				key, value = c.Next()
			}
			next, done = bytes.Clone(key), key == nil
			return nil
		})
		if err == nil && len(some) > 0 {
			err = each(some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
