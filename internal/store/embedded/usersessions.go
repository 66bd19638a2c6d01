package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// userSessions is the bucket of the sessions by user. A key is the digest of the username, 8 bytes of
// the time at which the session was created, and the digest of the session; there is no value. The
// bucket is made with its first entry, because files of earlier releases lack it. Sessions of such a
// release have no entry, so they do not count; and such a release leaves entries behind whose session
// is gone.
var userSessions = []byte("user_sessions")

const userSessionKeySize = 2*len(secret.Digest{}) + 8

func userSessionKey(s *grants.Session) []byte {
	user := secret.DigestOf(s.Username) // usernames differ in length
	b := binary.BigEndian.AppendUint64(user[:], sortable(s.CreatedAt))
	return append(b, s.Digest[:]...)
}

// indexSession adds the entry of a session.
func (w *writeTx) indexSession(s *grants.Session) error {
	b, err := w.tx.CreateBucketIfNotExists(userSessions)
	if err == nil {
		err = b.Put(userSessionKey(s), nil)
	}
	if err != nil {
		return fmt.Errorf("embedded: put into %s: %w", userSessions, err)
	}
	w.touched, w.dirty = true, true
	return nil
}

// unindexSession removes the entry of a session, if it has one.
func (w *writeTx) unindexSession(d secret.Digest, value []byte) error {
	s, err := decodeSession(d, value)
	if err != nil {
		return nil //nolint:nilerr // a damaged session can be removed; its entry is as one left behind
	}
	return w.deleteUserSession(w.tx.Bucket(userSessions), userSessionKey(&s))
}

func (w *writeTx) deleteUserSession(b *bolt.Bucket, key []byte) error {
	if b == nil {
		return nil
	}
	if err := b.Delete(key); err != nil {
		return fmt.Errorf("embedded: delete from %s: %w", userSessions, err)
	}
	w.touched, w.dirty = true, true
	return nil
}

// endOldest removes the oldest sessions of a user until no more than most are left.
func (w *writeTx) endOldest(username string, most int) error {
	b := w.tx.Bucket(userSessions)
	if b == nil {
		return nil
	}
	user := secret.DigestOf(username)
	var there []place
	var stale [][]byte
	c := b.Cursor()
	for key, _ := c.Seek(user[:]); bytes.HasPrefix(key, user[:]); key, _ = c.Next() {
		if len(key) != userSessionKeySize {
			return fmt.Errorf("%w: malformed entry %x in %s", ErrCorrupt, key, userSessions)
		}
		p := place{kind: sessions, digest: secret.Digest(key[userSessionKeySize-len(user):])}
		if w.find(p) == nil {
			stale = append(stale, bytes.Clone(key))
		} else {
			there = append(there, p)
		}
	}
	for _, key := range stale {
		if err := w.deleteUserSession(b, key); err != nil {
			return err
		}
	}
	for _, p := range there[:max(0, len(there)-most)] {
		if err := w.set(p, nil); err != nil {
			return err
		}
	}
	return nil
}
