package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store/exchange"
)

// Exchange implements [exchange.Store] with one unordered bulk of upserts and one find. Each is one
// command. Both are sent at the same time, and only if there is something to write or to read. If
// one fails, the results still have the outcome of the other. Only ctx bounds the time of both: a
// large batch needs more than an ordinary operation.
func (s *Store) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := exchange.CheckItems(items); err != nil {
		return nil, fmt.Errorf("mongo: %w", err)
	}
	results := make([]exchange.Result, len(items))
	var written []int // indexes of items
	var wanted bson.A // _ids
	for i := range items {
		it, r := &items[i], &results[i]
		// A server may treat two different names that are not UTF-8 as equal, so they are not sent.
		possible := utf8.ValidString(it.ID.ClientID) && utf8.ValidString(it.ID.Username) && utf8.ValidString(it.ID.Limit)
		if it.Read && possible {
			wanted = append(wanted, counterID(it.ID))
		}
		r.Read = it.Read && !possible // such a document cannot exist
		if it.Write == nil {
			continue
		}
		if r.Err = it.Write.Check(); !possible {
			r.Err = errors.New("mongo: a name of the counter is not UTF-8")
		}
		if r.Err != nil {
			r.Status = exchange.Rejected
			continue
		}
		written = append(written, i)
	}
	var wrote, read error
	var wg sync.WaitGroup
	if len(written) > 0 {
		wg.Go(func() {
			wrote = run(ctx, "write counters", func(ctx context.Context) error { return s.writeCounters(ctx, items, written, results) })
		})
	}
	if len(wanted) > 0 {
		wg.Go(func() {
			read = run(ctx, "read counters", func(ctx context.Context) error { return s.readCounters(ctx, items, wanted, results) })
		})
	}
	wg.Wait()
	return results, cmp.Or(wrote, read)
}

// writeCounters sends the bulk and sets Status and Err of the results. If the filter of a write
// does not match the document, the upsert tries to insert and fails because of the duplicate _id.
// So the errors of the reply name exactly the writes that did not match.
func (s *Store) writeCounters(ctx context.Context, items []exchange.Item, written []int, results []exchange.Result) error {
	models, writes := make([]mongo.WriteModel, len(written)), make([]*exchange.Write, len(written))
	for m, i := range written {
		models[m], writes[m] = counterModel(items[i].ID, items[i].Write), items[i].Write
	}
	result, err := s.counters.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false).SetComment(comment(ctx)))
	var bulk mongo.BulkWriteException
	if err != nil && !errors.As(err, &bulk) {
		return err // the status of all stays Unknown
	}
	outcomes, err := counterOutcomes(writes, result, bulk)
	for m, i := range written {
		results[i].Status, results[i].Err = outcomes[m].Status, outcomes[m].Err
	}
	return err
}

// readCounters sends the find and sets Read and Record of the results. If it fails, the documents
// received so far count, and the others are not marked as read.
func (s *Store) readCounters(ctx context.Context, items []exchange.Item, wanted bson.A, results []exchange.Result) error {
	cursor, err := s.counters.Find(ctx, byID(field("$in", wanted)), options.Find().SetBatchSize(exchange.MaxBatch).SetComment(comment(ctx)))
	if err != nil {
		return err
	}
	for cursor.Next(ctx) {
		r := counterRecord(cursor.Current)
		i, ok := slices.BinarySearchFunc(items, r.ID, func(it exchange.Item, id exchange.CounterID) int {
			return exchange.CompareIDs(it.ID, id)
		})
		if ok && items[i].Read {
			results[i].Read, results[i].Record = true, &r
		}
	}
	if err := errors.Join(cursor.Err(), cursor.Close(ctx)); err != nil {
		return err
	}
	for i := range items {
		results[i].Read = results[i].Read || items[i].Read
	}
	return nil
}

// CountersOf implements admin.StoredCounters.
func (s *Store) CountersOf(ctx context.Context, clientID string, username *string, limit int) (records []exchange.Record, err error) {
	opts := options.Find().SetLimit(int64(limit))
	err = s.find(ctx, "read client counters", s.counters, countersOf(clientID, username), opts, func(doc bson.Raw) error {
		records = append(records, counterRecord(doc))
		return nil
	})
	return records, err
}

// EraseCounters implements resets.Eraser.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	return s.do(ctx, "erase counters", func(ctx context.Context) error {
		_, err := s.counters.DeleteMany(ctx, countersOf(clientID, username), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}

// countersOf returns the filter for the counters of a client, or of one of its usernames. It is a
// range of _ids, so the index finds them. MongoDB compares documents field by field, sorts a
// document without further fields before one with further fields, and sorts MaxKey after every
// string.
func countersOf(clientID string, username *string) bson.D {
	from, next := field("clientId", text(clientID)), "username"
	if username != nil {
		from, next = append(from, bson.E{Key: next, Value: text(*username)}), "limit"
	}
	to := slices.Concat(from, field(next, bson.MaxKey{}))
	return byID(bson.D{{Key: "$gte", Value: from}, {Key: "$lte", Value: to}})
}

// Now implements [exchange.Store] with the clock of the primary.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.do(ctx, "read clock", func(ctx context.Context) error {
		hello, err := s.hello(ctx)
		if now = hello.LocalTime; err == nil && now.IsZero() {
			err = errors.New("the server does not report its time")
		}
		return err
	})
	return now, err
}

// hello is a server's description of itself.
type hello struct {
	LocalTime time.Time `bson:"localTime"`
	Primary   bool      `bson:"isWritablePrimary"`
	Master    bool      `bson:"ismaster"` // the same, in older servers
	Set       string    `bson:"setName"`
	Msg       string    `bson:"msg"`
}

func (s *Store) hello(ctx context.Context) (h hello, err error) {
	admin := s.client.Database("admin")
	err = admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&h)
	if hasCode(err, commandNotFound) { // a server older than MongoDB 4.4.2, or a similar one
		err = admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Decode(&h)
	}
	return h, err
}

const commandNotFound = 59

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}
