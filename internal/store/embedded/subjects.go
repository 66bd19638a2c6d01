package embedded

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/gateway/sharing"
)

// subjects is the bucket of the users of refresh tokens, by key. The bucket is made with its first entry,
// because files of earlier releases lack it. Such a release leaves it as it is. There may be millions, and
// nothing asks for the order in which they expire, so they are swept without an index, which would be
// larger than they are.
var subjects = []byte("subjects")

// A record is a header and the user.
func encodeSubject(e *sharing.Entry) []byte { return append(header(0, e.Expires), e.Subject...) }

func decodeSubject(k sharing.Key, value []byte) (sharing.Entry, error) {
	d, _, expires := open(value)
	e := sharing.Entry{Key: k, Subject: string(d.rest), Expires: expires}
	if d.err != nil {
		return sharing.Entry{}, fmt.Errorf("read user of a refresh token: %w", d.err)
	}
	return e, nil
}

// Subject implements [sharing.Store].
func (s *Store) Subject(ctx context.Context, k sharing.Key) (e sharing.Entry, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		var value []byte
		if b := tx.Bucket(subjects); b != nil {
			value = b.Get(k[:])
		}
		if value == nil {
			return sharing.ErrNotFound
		}
		e, err = decodeSubject(k, value)
		return err
	})
	return e, err
}

// PutSubjects implements [sharing.Store]. All are stored, or none.
func (s *Store) PutSubjects(ctx context.Context, entries []sharing.Entry) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		b, err := w.tx.CreateBucketIfNotExists(subjects)
		for i := 0; err == nil && i < len(entries); i++ {
			err = b.Put(entries[i].Key[:], encodeSubject(&entries[i]))
		}
		if err != nil {
			return fmt.Errorf("embedded: put into %s: %w", subjects, err)
		}
		w.touched, w.dirty = true, true
		return nil
	})
}

// sweepSubjects removes those that expired before now.
func (s *Store) sweepSubjects(ctx context.Context, now time.Time) (removed int, err error) {
	return s.sweepInParts(ctx, subjects, &s.subjectsSweptTo, now)
}
