package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/syncer"
)

// Beat implements [syncer.Instances]. The server stamps the beat with its own
// clock, so that no instance's clock decides who is alive.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, err error) {
	fields, err := instanceFields(self)
	if err != nil {
		return nil, err
	}
	update := bson.D{
		{Key: "$set", Value: fields},
		{Key: "$currentDate", Value: bson.D{{Key: "beaten", Value: true}}},
	}
	err = s.do(ctx, "beat", func(ctx context.Context) error {
		_, err := s.instances.UpdateOne(ctx, byID(self.ID), update, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return err
		}
		all, err := findAll[syncer.Instance](ctx, s.instances, bson.D{}, options.Find().SetSort(byID(1)))
		if err != nil {
			return err
		}
		var since time.Time
		alive, since = living(all, self.ID, ttl)
		_, err = s.instances.DeleteMany(ctx, bson.D{{Key: "beaten", Value: bson.D{{Key: "$lte", Value: since}}}})
		return err
	})
	return alive, err
}

// living are the instances that have beaten since ttl before our own beat.
func living(all []syncer.Instance, self string, ttl time.Duration) (alive []syncer.Instance, since time.Time) {
	for _, i := range all {
		if i.ID == self {
			since = i.Beaten.Add(-ttl)
		}
	}
	for _, i := range all {
		if i.Beaten.After(since) {
			alive = append(alive, i)
		}
	}
	return alive, since
}

// instanceFields are all but the _id and the beat, which the server writes.
func instanceFields(i syncer.Instance) (bson.D, error) {
	raw, err := bson.Marshal(i)
	var all, fields bson.D
	if err = errors.Join(err, bson.Unmarshal(raw, &all)); err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Key != "_id" && e.Key != "beaten" {
			fields = append(fields, e)
		}
	}
	return fields, nil
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.do(ctx, "leave", func(ctx context.Context) error {
		_, err := s.instances.DeleteOne(ctx, byID(id))
		return err
	})
}
