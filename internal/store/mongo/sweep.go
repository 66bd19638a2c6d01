package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// sweepStep bounds what one command removes.
const sweepStep = 500

// Sweep implements [grants.Sweeper]. The TTL indexes do the same about once a
// minute; this is for servers whose monitor is off or lags behind.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	removed := 0
	for _, c := range []collection{s.grants, s.sessions, s.revocations, s.counters} {
		n, err := s.sweep(ctx, c, bson.D{{Key: "expire", Value: bson.D{{Key: "$lt", Value: now}}}})
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// sweep removes what is due, in bounded steps.
func (s *Store) sweep(ctx context.Context, c collection, due bson.D) (removed int, err error) {
	for {
		var found, counted int
		err := s.do(ctx, "sweep "+c.Name(), func(ctx context.Context) (err error) {
			found, counted, err = sweepOnce(ctx, c, due)
			return err
		})
		removed += counted
		if err != nil || found < sweepStep {
			return removed, err
		}
	}
}

// sweepOnce removes some of what has expired. The mere note that a code was
// spent is removed as well, but is nothing that anybody stored.
func sweepOnce(ctx context.Context, c collection, due bson.D) (found, counted int, err error) {
	type entry struct {
		ID   any    `bson:"_id"`
		Kind string `bson:"kind"`
	}
	list, err := findAll[entry](ctx, c, due, options.Find().SetLimit(sweepStep).
		SetProjection(bson.D{{Key: "_id", Value: 1}, {Key: "kind", Value: 1}}))
	if err != nil || len(list) == 0 {
		return 0, 0, err
	}
	ids, notes := bson.A{}, bson.A{}
	for _, e := range list {
		if e.Kind == kindClaim {
			notes = append(notes, e.ID)
		} else {
			ids = append(ids, e.ID)
		}
	}
	if counted, err = remove(ctx, c, ids, due); err == nil {
		_, err = remove(ctx, c, notes, due)
	}
	return len(list), counted, err
}

// remove deletes the documents of those _ids that are still due.
func remove(ctx context.Context, c collection, ids bson.A, due bson.D) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	filter := append(byID(bson.D{{Key: "$in", Value: ids}}), due...)
	result, err := c.DeleteMany(ctx, filter)
	if err != nil {
		return 0, err
	}
	return int(result.DeletedCount), nil
}
