package mongo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// eventDoc is an event. Its _id is the key, so that they are ordered by time.
type eventDoc struct {
	Key    string `bson:"_id"`
	Target string `bson:"target"`
	Open   bool   `bson:"open,omitempty"`
	Entry  string `bson:"entry"` // the whole event, as JSON; whether it is open is beside it
}

// storedEvent is an event as it is read: see storedEntry.
type storedEvent struct {
	Key   string        `bson:"_id"`
	Open  bson.RawValue `bson:"open"`
	Entry bson.RawValue `bson:"entry"`
}

// AddEvent implements [clientcfg.EventLog]. If the driver sends it again after a lost reply, it finds
// its own.
func (s *Store) AddEvent(ctx context.Context, e clientcfg.Event) error {
	open := e.Open
	e.Open = false
	text, err := json.Marshal(&e)
	if err != nil {
		return fmt.Errorf("mongo: encode event: %w", err)
	}
	return s.insert(ctx, "add event", s.events, eventDoc{e.Key(), e.Target, open, string(text)}, nil)
}

// EndEvent implements [clientcfg.EventLog].
func (s *Store) EndEvent(ctx context.Context, key string, made bool) error {
	if !made {
		return s.remove(ctx, "remove event", s.events, key, nil)
	}
	return s.do(ctx, "close event", func(ctx context.Context) error {
		closed := bson.D{{Key: "$unset", Value: bson.D{{Key: "open", Value: ""}}}}
		_, err := s.events.UpdateOne(ctx, byID(key), closed, options.UpdateOne().SetComment(comment(ctx)))
		return err
	})
}

// Events implements [clientcfg.EventLog].
func (s *Store) Events(ctx context.Context, q clientcfg.EventQuery) (events []clientcfg.Event, err error) {
	keys := bson.D{{Key: "$gte", Value: ""}} // texts only: see numbered
	if q.Before != "" {
		keys = append(keys, bson.E{Key: "$lt", Value: q.Before})
	}
	filter := byID(keys)
	if q.Target != "" {
		filter = append(filter, bson.E{Key: "target", Value: q.Target})
	}
	err = s.do(ctx, "read events", func(ctx context.Context) error {
		docs, err := findAll[storedEvent](ctx, s.events, filter, options.Find().SetSort(byID(-1)).SetLimit(int64(q.Limit)))
		for i := 0; err == nil && i < len(docs); i++ {
			if e, ok := clientcfg.ReadEvent(docs[i].Key, textOf(docs[i].Entry)); ok {
				e.Open, _ = docs[i].Open.BooleanOK()
				events = append(events, e)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// SweepEvents implements [clientcfg.EventLog].
func (s *Store) SweepEvents(ctx context.Context, before time.Time) (removed int, err error) {
	err = s.do(ctx, "sweep events", func(ctx context.Context) error {
		old := byID(bson.D{{Key: "$lt", Value: clientcfg.EventsBefore(before)}})
		result, err := s.events.DeleteMany(ctx, old, options.DeleteMany().SetComment(comment(ctx)))
		if err == nil {
			removed = int(result.DeletedCount)
		}
		return err
	})
	return removed, err
}
