package mongo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/syncer"
)

// Beat implements [syncer.Instances]. The server dates the heartbeat by its own clock, so that no
// instance's clock decides which instances are alive. The records of others stay as they are: each
// instance deletes its own when it stops, and a TTL index those of processes that died.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	err = s.do(ctx, "store heartbeat", func(ctx context.Context) error {
		if previous, err = s.putInstance(ctx, self); err != nil {
			return err
		}
		alive, err = s.aliveBeside(ctx, self.ID, time.Time{}, ttl)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return alive, previous, nil
}

// putInstance replaces the record and returns the nonce that it had. Of two upserts of one _id at
// once, one may fail with a duplicate key: repeated, it finds the document.
func (s *Store) putInstance(ctx context.Context, self syncer.Instance) (previous string, err error) {
	update := bson.D{
		{Key: "$set", Value: bson.D{
			{Key: "time", Value: self.Time}, {Key: "nonce", Value: self.Nonce}, {Key: "report", Value: bson.Binary{Data: self.Report}},
		}},
		{Key: "$currentDate", Value: bson.D{{Key: "beaten", Value: true}}},
	}
	before := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.Before).
		SetProjection(bson.D{{Key: "nonce", Value: 1}}).SetComment(comment(ctx))
	for {
		raw, err := s.instances.FindOneAndUpdate(ctx, byID(self.ID), update, before).Raw()
		switch {
		case err == nil:
			return instanceOf(raw).Nonce, nil
		case errors.Is(err, mongo.ErrNoDocuments):
			return "", nil
		case !mongo.IsDuplicateKeyError(err):
			return "", err
		}
	}
}

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) (alive []syncer.Instance, err error) {
	err = s.do(ctx, "read heartbeats", func(ctx context.Context) error {
		now, err := s.localTime(ctx)
		if err != nil {
			return err
		}
		alive, err = s.aliveBeside(ctx, "", now, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	return alive, nil
}

// aliveBeside returns the instances whose heartbeat is within ttl of that of self. Without a self
// it is the newest heartbeat instead, except that one which is ahead of the time of the read by ttl
// or more does not count: the clock that dated it was wrong. All times are by the clock of the
// server.
//
// It reads the newest heartbeats first and stops behind those that are alive: the record of a
// process that died stays for a day.
func (s *Store) aliveBeside(ctx context.Context, self string, read time.Time, ttl time.Duration) (alive []syncer.Instance, err error) {
	newest := options.Find().SetSort(bson.D{{Key: "beaten", Value: -1}}).SetProjection(bson.D{{Key: "report", Value: 0}}).SetComment(comment(ctx))
	cursor, err := s.instances.Find(ctx, bson.D{}, newest)
	if err != nil {
		return nil, err
	}
	var now time.Time
	for cursor.Next(ctx) {
		i := instanceOf(cursor.Current)
		switch {
		case i.ID == "" || i.Beaten.IsZero(): // not written by this program
			continue
		case self == "" && i.Beaten.Sub(read) >= ttl:
			continue
		case i.ID == self, self == "" && now.IsZero():
			now = i.Beaten
		}
		if !now.IsZero() && now.Sub(i.Beaten) >= ttl {
			break
		}
		alive = append(alive, i)
	}
	if err := errors.Join(cursor.Err(), cursor.Close(ctx)); err != nil {
		return nil, err
	}
	if now.IsZero() && self != "" {
		return nil, errors.New("the heartbeat was stored and is not found")
	}
	alive = slices.DeleteFunc(alive, func(i syncer.Instance) bool { return i.Beaten.Sub(now) >= ttl })
	slices.SortFunc(alive, func(a, b syncer.Instance) int { return strings.Compare(a.ID, b.ID) })
	return alive, nil
}

// instanceOf reads a record. A field that is absent, as time and nonce are in records of earlier
// releases, or of another type is left zero, so that no record can stop the heartbeat.
func instanceOf(raw bson.Raw) (i syncer.Instance) {
	i.ID, _ = raw.Lookup("_id").StringValueOK()
	i.Beaten = timeOf(raw.Lookup("beaten"))
	i.Time = timeOf(raw.Lookup("time"))
	i.Nonce, _ = raw.Lookup("nonce").StringValueOK()
	_, i.Report, _ = raw.Lookup("report").BinaryOK()
	return i
}

func timeOf(v bson.RawValue) time.Time {
	if ms, ok := v.DateTimeOK(); ok {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.remove(ctx, "delete heartbeat", s.instances, id, nil)
}

// Reports returns the live instances with their reports, for the admin API.
func (s *Store) Reports(ctx context.Context, ttl time.Duration) (list []syncer.Instance, err error) {
	err = s.do(ctx, "read reports", func(ctx context.Context) error {
		list = nil
		now, err := s.localTime(ctx)
		if err != nil {
			return err
		}
		alive := bson.D{{Key: "beaten", Value: bson.D{{Key: "$gt", Value: now.Add(-ttl)}, {Key: "$lt", Value: now.Add(ttl)}}}}
		docs, err := findAll[bson.Raw](ctx, s.instances, alive, options.Find().SetSort(byID(1)))
		for _, raw := range docs {
			if i := instanceOf(raw); i.ID != "" { // otherwise not written by this program
				list = append(list, i)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
