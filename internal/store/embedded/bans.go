package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/bans"
	"oauth-server/internal/ratelimit"
)

// bansBucket is the bucket of bans, by client and username. The bucket is made with its first entry,
// because files of earlier releases lack it. Such a release leaves it as it is. Its sequence counts the
// writes.
var bansBucket = []byte("bans")

func banKey(k ratelimit.Key) []byte {
	return appendString(appendString(nil, k.ClientID), k.Username)
}

func encodeBan(b *bans.Ban) []byte {
	v := header(0, b.Expires())
	v = appendString(appendString(v, b.ClientID), b.Username)
	v = binary.AppendUvarint(binary.AppendUvarint(v, uint64(b.Version)), uint64(b.Level)) //nolint:gosec // undone by decodeBan
	v = appendTime(appendTime(appendTime(v, b.Since), b.Until), b.Forget)
	if !b.Lifted.IsZero() {
		v = appendTime(v, b.Lifted)
	}
	return v
}

func decodeBan(value []byte) (b bans.Ban, err error) {
	d, _, _ := open(value)
	b = bans.Ban{
		Key:     ratelimit.Key{ClientID: d.string(), Username: d.string()},
		Version: int64(d.length()), Level: int(d.length()), //nolint:gosec // as encodeBan wrote them
		Since: d.time(), Until: d.time(), Forget: d.time(),
	}
	if d.err == nil && len(d.rest) > 0 {
		b.Lifted = d.time()
	}
	if err := d.finish(); err != nil {
		return bans.Ban{}, fmt.Errorf("read ban: %w", err)
	}
	return b, nil
}

// Ban implements [bans.Store].
func (s *Store) Ban(ctx context.Context, k ratelimit.Key) (b bans.Ban, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		b, err = findBan(tx, banKey(k))
		return err
	})
	return b, err
}

func findBan(tx *bolt.Tx, key []byte) (bans.Ban, error) {
	if bucket := tx.Bucket(bansBucket); bucket != nil {
		if value := bucket.Get(key); value != nil {
			return decodeBan(value)
		}
	}
	return bans.Ban{}, bans.ErrNotFound
}

// PutBan implements [bans.Store]. What cannot be read is replaced.
func (s *Store) PutBan(ctx context.Context, b bans.Ban, seen int64) error {
	key, value := banKey(b.Key), encodeBan(&b)
	return s.writes.do(ctx, func(w *writeTx) error {
		if stored, err := findBan(w.tx, key); err == nil && stored.Version != seen || err != nil && seen != 0 {
			return bans.ErrChanged
		}
		bucket, err := w.tx.CreateBucketIfNotExists(bansBucket)
		if err == nil {
			_, err = bucket.NextSequence()
		}
		if err == nil {
			err = bucket.Put(key, value)
		}
		if err != nil {
			return fmt.Errorf("embedded: put into %s: %w", bansBucket, err)
		}
		w.touched, w.dirty = true, true
		return nil
	})
}

// Bans implements [bans.Store]: no ban, or all if there was a write. One that cannot be read is not in it.
func (s *Store) Bans(ctx context.Context, since bans.Mark) (list []bans.Ban, next int64, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list, next = nil, since.Number
		bucket := tx.Bucket(bansBucket)
		if bucket == nil {
			return nil
		}
		next = int64(bucket.Sequence()) //nolint:gosec // a count of writes
		if next == since.Number && next != 0 {
			return nil
		}
		return bucket.ForEach(func(_, value []byte) error {
			if b, err := decodeBan(value); err == nil {
				list = append(list, b)
			}
			return nil
		})
	})
	return list, next, err
}

// sweepBans removes the bans that need not be stored any longer. There are few.
func (s *Store) sweepBans(ctx context.Context, now time.Time) (removed int, err error) {
	var due [][]byte
	err = s.view(ctx, func(tx *bolt.Tx) error {
		due = nil
		if bucket := tx.Bucket(bansBucket); bucket != nil {
			return bucket.ForEach(func(key, value []byte) error {
				if len(due) < sweepStep && expiryOf(value).Before(now) {
					due = append(due, bytes.Clone(key))
				}
				return nil
			})
		}
		return nil
	})
	if err != nil || len(due) == 0 {
		return 0, err
	}
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		bucket := w.tx.Bucket(bansBucket)
		for _, key := range due {
			if value := bucket.Get(key); value == nil || !expiryOf(value).Before(now) {
				continue // it is banned again
			}
			if err := bucket.Delete(key); err != nil {
				return fmt.Errorf("embedded: delete from %s: %w", bansBucket, err)
			}
			w.touched, w.dirty = true, true
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
