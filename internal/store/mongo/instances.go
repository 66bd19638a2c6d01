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

// Beat implements [syncer.Instances]. The server stamps the heartbeat with its
// own clock, so that no instance's clock decides who is alive. The records of
// others stay as they are; a TTL index removes those that have ended.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	err = s.do(ctx, "beat", func(ctx context.Context) error {
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

// putInstance replaces the record and returns the nonce that it had. Two
// upserts of one _id at once may collide; the second then finds the document.
func (s *Store) putInstance(ctx context.Context, self syncer.Instance) (previous string, err error) {
	update := bson.D{
		{Key: "$set", Value: bson.D{
			{Key: "time", Value: self.Time}, {Key: "nonce", Value: self.Nonce}, {Key: "report", Value: bson.Binary{Data: self.Report}},
		}},
		{Key: "$currentDate", Value: bson.D{{Key: "beaten", Value: true}}},
	}
	before := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.Before).
		SetProjection(bson.D{{Key: "nonce", Value: 1}})
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
	err = s.do(ctx, "alive", func(ctx context.Context) error {
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

// aliveBeside returns the instances that have beaten within ttl of the heartbeat
// of self, or before the newest one at read if self is empty, by the same clock.
// It reads the newest first, and no further than it needs: records stay for a
// day after their process. One that is further ahead is of a clock that was
// wrong.
func (s *Store) aliveBeside(ctx context.Context, self string, read time.Time, ttl time.Duration) (alive []syncer.Instance, err error) {
	newest := options.Find().SetSort(bson.D{{Key: "beaten", Value: -1}}).SetProjection(bson.D{{Key: "report", Value: 0}})
	cursor, err := s.instances.Find(ctx, bson.D{}, newest)
	if err != nil {
		return nil, err
	}
	var now time.Time
	for cursor.Next(ctx) {
		i := instanceOf(cursor.Current)
		switch {
		case i.ID == "" || i.Beaten.IsZero(): // of another program
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
		return nil, errors.New("the heartbeat is gone again")
	}
	alive = slices.DeleteFunc(alive, func(i syncer.Instance) bool { return i.Beaten.Sub(now) >= ttl })
	slices.SortFunc(alive, func(a, b syncer.Instance) int { return strings.Compare(a.ID, b.ID) })
	return alive, nil
}

// instanceOf reads a record. A release before this one wrote no time and no
// nonce; what makes no sense is left zero, so that a record of another program
// does not stop the heartbeat.
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
	return s.do(ctx, "leave", func(ctx context.Context) error {
		_, err := s.instances.DeleteOne(ctx, byID(id))
		return err
	})
}

// Reports returns the live instances with their reports, for the admin API.
func (s *Store) Reports(ctx context.Context, ttl time.Duration) (list []syncer.Instance, err error) {
	err = s.do(ctx, "reports", func(ctx context.Context) error {
		list = nil
		now, err := s.localTime(ctx)
		if err != nil {
			return err
		}
		alive := bson.D{{Key: "beaten", Value: bson.D{{Key: "$gt", Value: now.Add(-ttl)}, {Key: "$lt", Value: now.Add(ttl)}}}}
		docs, err := findAll[bson.Raw](ctx, s.instances, alive, options.Find().SetSort(byID(1)))
		for _, raw := range docs {
			if i := instanceOf(raw); i.ID != "" { // otherwise of another program
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
