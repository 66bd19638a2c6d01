package mongo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/bans"
	"oauth-server/internal/ratelimit"
)

// banKey is the _id of a ban, as that of a counter begins.
type banKey struct {
	ClientID string `bson:"clientId"`
	Username string `bson:"username"`
}

type banDoc struct {
	Key     banKey    `bson:"_id"`
	Version int64     `bson:"version"`
	Level   int64     `bson:"level"`
	Since   time.Time `bson:"since"`
	Until   time.Time `bson:"until"`
	Forget  time.Time `bson:"forget"`
	Lifted  time.Time `bson:"lifted,omitempty"`
	Updated time.Time `bson:"updated"` // when it was stored, by the time of the server
}

func storedBan(raw bson.Raw) (b bans.Ban, updated time.Time, err error) {
	var d banDoc
	if err = bson.Unmarshal(raw, &d); err == nil {
		err = checkTimes(d.Since, d.Until, d.Forget, d.Lifted, d.Updated)
	}
	if err != nil {
		return b, updated, fmt.Errorf("decode ban: %w", err)
	}
	return bans.Ban{
		Key:     ratelimit.Key{ClientID: d.Key.ClientID, Username: d.Key.Username},
		Version: d.Version, Level: int(min(d.Level, math.MaxInt32)), Since: d.Since, Until: d.Until, Forget: d.Forget, Lifted: d.Lifted,
	}, d.Updated, nil
}

// Ban implements [bans.Store].
func (s *Store) Ban(ctx context.Context, k ratelimit.Key) (b bans.Ban, err error) {
	err = s.do(ctx, "read ban", func(ctx context.Context) error {
		if !validNames(k.ClientID, &k.Username) {
			return bans.ErrNotFound
		}
		raw, err := s.bans.FindOne(ctx, byID(banKey(k)), options.FindOne().SetComment(comment(ctx))).Raw()
		switch {
		case errors.Is(err, mongo.ErrNoDocuments):
			return bans.ErrNotFound
		case err != nil:
			return err
		}
		b, _, err = storedBan(raw)
		return err
	})
	return b, err
}

// PutBan implements [bans.Store]. Where the driver has sent the command twice, it may return
// [bans.ErrChanged] for what it has stored itself.
func (s *Store) PutBan(ctx context.Context, b bans.Ban, seen int64) error {
	if !validNames(b.ClientID, &b.Username) {
		return errors.New("mongo: store ban: a name is not UTF-8")
	}
	set := bson.D{
		{Key: "version", Value: b.Version},
		{Key: "level", Value: int64(b.Level)},
		{Key: "since", Value: b.Since},
		{Key: "until", Value: b.Until},
		{Key: "forget", Value: b.Forget},
		{Key: "expire", Value: b.Expires()}, // the TTL index
	}
	update := bson.D{{Key: "$currentDate", Value: bson.D{{Key: "updated", Value: true}}}}
	if b.Lifted.IsZero() {
		update = append(update, bson.E{Key: "$unset", Value: bson.D{{Key: "lifted", Value: ""}}})
	} else {
		set = append(set, bson.E{Key: "lifted", Value: b.Lifted})
	}
	update = append(update, bson.E{Key: "$set", Value: set})
	return s.do(ctx, "store ban", func(ctx context.Context) error {
		// No ban has the version 0, so with it nothing is found, and one that is there is in the way.
		filter := append(byID(banKey(b.Key)), bson.E{Key: "version", Value: seen})
		result, err := s.bans.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(seen == 0).SetComment(comment(ctx)))
		if mongo.IsDuplicateKeyError(err) || err == nil && result.MatchedCount+result.UpsertedCount == 0 {
			return bans.ErrChanged
		}
		return err
	})
}

// bansOverlap is from how long before a mark bans are read again: writes need not appear in the order of their
// times.
const bansOverlap = 10 * time.Second

// Bans implements [bans.Store]. A mark is the time of the last write, by the server, in milliseconds; at most the
// present time of the server: its clock may have been ahead, and all that is stored until it is that late again
// would be behind the mark. A ban that cannot be read is not in it.
func (s *Store) Bans(ctx context.Context, since bans.Mark) (list []bans.Ban, next int64, err error) {
	err = s.do(ctx, "read bans", func(ctx context.Context) error {
		list, next = nil, since.Number
		filter := bson.D{}
		if since.Number > 0 {
			after := time.UnixMilli(since.Number)
			if !since.Settled {
				after = after.Add(-bansOverlap)
			}
			filter = bson.D{{Key: "updated", Value: bson.D{{Key: "$gt", Value: after}}}}
		}
		docs, err := findAll[bson.Raw](ctx, s.bans, filter, options.Find())
		for _, raw := range docs {
			if b, updated, err := storedBan(raw); err == nil {
				list = append(list, b)
				next = max(next, updated.UnixMilli())
			}
		}
		if err != nil || next == since.Number {
			return err
		}
		now, err := s.localTime(ctx)
		next = min(next, now.UnixMilli())
		return err
	})
	return list, next, err
}
