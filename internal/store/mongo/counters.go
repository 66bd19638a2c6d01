package mongo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Apply implements [syncer.Store] with one unordered bulk of upserts, sent as
// one command. Where the document is not as a write's filter wants it, the
// upsert tries to insert and meets the _id that is there, so the server's
// error names exactly the writes that were refused. The time that it may take
// is the caller's alone: a large batch needs more than an ordinary operation.
func (s *Store) Apply(ctx context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(writes) == 0 {
		return nil, nil
	}
	models := make([]mongo.WriteModel, len(writes))
	for i := range writes {
		models[i] = counterModel(instance, &writes[i])
	}
	result, err := s.counters.BulkWrite(withOperation(ctx, "write counters"), models, options.BulkWrite().SetOrdered(false))
	var bulk mongo.BulkWriteException
	switch {
	case err == nil:
		return counterOutcomes(writes, result, bulk), nil
	case errors.As(err, &bulk):
		return counterOutcomes(writes, result, bulk), nil
	case errors.Is(err, mongo.ErrClientDisconnected):
		return nil, ErrClosed
	}
	return nil, fmt.Errorf("mongo: write counters: %w", err)
}

// counterID is the _id. The order of its fields is part of it.
func counterID(id ratelimit.CounterID) bson.D {
	d := bson.D{{Key: "clientId", Value: id.ClientID}, {Key: "username", Value: id.Username}}
	if id.Limit != "" {
		d = append(d, bson.E{Key: "limit", Value: id.Limit})
	}
	return d
}

func counterModel(instance string, w *syncer.Write) mongo.WriteModel {
	filter := byID(counterID(w.ID))
	if w.Blind {
		filter = append(filter, bson.E{
			Key: "writers." + instance, Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: w.Seq}}}},
		})
	} else {
		filter = append(filter, bson.E{Key: "version", Value: w.Version}, bson.E{Key: "etag", Value: w.Etag})
	}
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(counterUpdate(instance, w)).SetUpsert(true)
}

func counterUpdate(instance string, w *syncer.Write) bson.D {
	inc := bson.D{{Key: "version", Value: int64(1)}}
	for _, f := range w.Delta {
		inc = append(inc, bson.E{Key: frameField(f.Name), Value: f.Count})
	}
	update := bson.D{
		{Key: "$inc", Value: inc},
		{Key: "$set", Value: bson.D{{Key: "etag", Value: w.NewEtag}, {Key: "writers." + instance, Value: w.Seq}}},
		{Key: "$max", Value: bson.D{{Key: "expire", Value: w.Expire}}},
	}
	var unset bson.D
	for _, name := range w.Dead {
		unset = append(unset, bson.E{Key: frameField(name), Value: ""})
	}
	for _, name := range w.Silent {
		if validWriter(name) {
			unset = append(unset, bson.E{Key: "writers." + name, Value: ""})
		}
	}
	if unset != nil {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	return update
}

func frameField(name int64) string { return "requestCounters." + strconv.FormatInt(name, 10) }

// counterOutcomes sorts out what the server said of each write.
func counterOutcomes(writes []syncer.Write, result *mongo.BulkWriteResult, bulk mongo.BulkWriteException) []syncer.Outcome {
	outcomes := make([]syncer.Outcome, len(writes))
	for i := range outcomes {
		outcomes[i].Status = syncer.Applied
		if concern := bulk.WriteConcernError; concern != nil { // applied, but perhaps not to last
			outcomes[i] = syncer.Outcome{Err: fmt.Errorf("mongo: no majority has confirmed the write (code %d): %s", concern.Code, concern.Message)}
		}
	}
	if result != nil {
		for i := range result.UpsertedIDs {
			if w := &writes[i]; !w.Blind && w.Version != 0 {
				outcomes[i] = syncer.Outcome{Err: errGone}
			}
		}
	}
	for _, e := range bulk.WriteErrors {
		if e.Index >= 0 && e.Index < len(outcomes) {
			outcomes[e.Index] = refusal(e.WriteError)
		}
	}
	return outcomes
}

// errGone: the document that the write was based on had expired, so the upsert
// has begun a new one with it. That is not what the write was conditioned on;
// asked again under its sequence, the store tells that it has been counted.
var errGone = errors.New("mongo: the counter had expired, and begins anew with this write")

// Server error codes of single writes.
const (
	duplicateKey = 11000
	badValue     = 2
	typeMismatch = 14
	notViable    = 28 // a path through something that is no document
	invalid      = 121
)

// refusal is the outcome of a write that the server did not apply.
func refusal(e mongo.WriteError) syncer.Outcome {
	err := fmt.Errorf("mongo: code %d: %s", e.Code, e.Message)
	switch e.Code {
	case duplicateKey:
		return syncer.Outcome{Status: syncer.Conflict}
	case badValue, typeMismatch, notViable, invalid:
		return syncer.Outcome{Status: syncer.Rejected, Err: err}
	default: // a deadlock, say: not applied, perhaps, but not refused for good either
		return syncer.Outcome{Status: syncer.Unknown, Err: err}
	}
}

// Load implements [syncer.Store].
func (s *Store) Load(ctx context.Context, ids []ratelimit.CounterID) ([]syncer.Record, error) {
	if err := ctx.Err(); err != nil || len(ids) == 0 {
		return nil, err
	}
	in := make(bson.A, len(ids))
	for i, id := range ids {
		in[i] = counterID(id)
	}
	ctx = withOperation(ctx, "read counters")
	cursor, err := s.counters.Find(ctx, byID(bson.D{{Key: "$in", Value: in}}), options.Find().SetBatchSize(syncer.MaxBatch))
	if err != nil {
		return nil, fmt.Errorf("mongo: read counters: %w", err)
	}
	var records []syncer.Record
	for cursor.Next(ctx) {
		records = append(records, counterRecord(cursor.Current))
	}
	if err := errors.Join(cursor.Err(), cursor.Close(ctx)); err != nil {
		return nil, fmt.Errorf("mongo: read counters: %w", err)
	}
	return records, nil
}

// Now implements [syncer.Store] with the clock of the primary.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.do(ctx, "read the clock", func(ctx context.Context) error {
		var greeting struct {
			LocalTime time.Time `bson:"localTime"`
		}
		admin := s.client.Database("admin")
		err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&greeting)
		if hasCode(err, commandNotFound) { // a server older than MongoDB 4.4.2, or like it
			err = admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Decode(&greeting)
		}
		if err == nil && greeting.LocalTime.IsZero() {
			err = errors.New("the server does not tell its time")
		}
		now = greeting.LocalTime
		return err
	})
	return now, err
}

const commandNotFound = 59

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}
