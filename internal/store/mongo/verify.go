package mongo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// CheckStatus is the outcome of one [Check].
type CheckStatus string

// The outcomes: the server has the property, does not offer it, or behaves differently; or the
// check could not be made, because of an earlier failure.
const (
	CheckOK        CheckStatus = "ok"
	CheckMissing   CheckStatus = "missing"
	CheckFailed    CheckStatus = "failed"
	CheckUnchecked CheckStatus = "unchecked"
)

// Check is one property that the store requires of the server, and whether the server has it.
// Properties are numbered as in docs/deployment.md.
type Check struct {
	Number  int         `json:"number"`
	Name    string      `json:"check"`
	Status  CheckStatus `json:"status"`
	Exact   bool        `json:"exact"`             // exact counts depend on it
	Detail  string      `json:"detail,omitempty"`  // the measurement, or the difference found
	Follows string      `json:"follows,omitempty"` // consequence if it is missing or failed
}

// Verification is the result of [Store.Verify], in the order of the numbers.
type Verification struct {
	Checks []Check `json:"checks"`
}

// Inexact returns the checks that exact counts depend on and that are not ok.
func (v Verification) Inexact() (failed []Check) {
	for _, c := range v.Checks {
		if c.Exact && c.Status != CheckOK {
			failed = append(failed, c)
		}
	}
	return failed
}

// VerifyOptions are the options of [Store.Verify].
type VerifyOptions struct {
	// WaitTTL is how long the server gets to delete an expired document; 0 checks only that it
	// keeps the index.
	WaitTTL time.Duration
	// Waiting is called every five seconds of that wait, and at its start. May be nil.
	Waiting func(elapsed time.Duration)
}

// difference is the error of a server that behaves differently from MongoDB.
type difference string

func (d difference) Error() string { return string(d) }

func differs(format string, args ...any) error { return difference(fmt.Sprintf(format, args...)) }

// verifier runs probes. All of them write and read with majority concern.
type verifier struct {
	store       *Store // the probes write to its counters
	scratch     bool   // the counters are in a scratch collection
	options     VerifyOptions
	client      string          // of the counters: no client ID has a space
	ids         []bson.D        // of the counters
	interrupted <-chan struct{} // ends a wait
}

// Verify runs all checks in a scratch collection, and drops the collection at the end, even if ctx
// ends. If the checks end early or the collection may be left, it returns an error together with
// the results so far.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Verification, error) {
	own := *s
	own.counters = s.db.Collection("verify_scratch_" + rand.Text())
	v := verifier{store: &own, scratch: true, options: o}
	return v.run(ctx, relied)
}

// VerifyCounters runs the checks of the writes and reads of counters. It needs only the rights of
// serving: it writes a few counters of a client ID that no client can have, and deletes them. If
// the process dies in between, the TTL index deletes them. Results and errors are the same as for
// [Store.Verify].
func (s *Store) VerifyCounters(ctx context.Context) (Verification, error) {
	v := verifier{store: s}
	return v.run(ctx, relied[:atStart])
}

func (v *verifier) run(ctx context.Context, properties []property) (all Verification, err error) {
	v.client, v.interrupted = "verify scratch "+rand.Text(), ctx.Done()
	for i, p := range properties {
		c := Check{Number: i + 1, Name: p.name, Exact: i < exact, Status: CheckUnchecked, Detail: "not checked because of an earlier failure"}
		if err == nil {
			err = v.check(ctx, &c, p)
		}
		all.Checks = append(all.Checks, c)
	}
	return all, errors.Join(err, run(ctx, "verify", v.cleanUp))
}

// check runs one probe. It returns an error that ends all checks: the server is unavailable, or a
// right is missing. A probe runs to its end, even if ctx ends: an abandoned write could arrive
// after the scratch collection is dropped, and create it again.
func (v *verifier) check(ctx context.Context, c *Check, p property) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*v.store.timeout+v.options.WaitTTL)
	defer cancel()
	var measured string
	err := run(bounded, "verify", func(ctx context.Context) (err error) {
		measured, err = p.probe(v, ctx)
		return err
	})
	var other difference
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		c.Status, c.Detail = CheckOK, measured
		return nil
	case errors.As(err, &other):
		err = other
	case isAway(err), c.Exact && hasCode(err, unauthorized):
		return err
	}
	c.Status, c.Detail, c.Follows = CheckMissing, err.Error(), p.follows
	if c.Exact || other != "" {
		c.Status = CheckFailed
	}
	return nil
}

// isAway reports whether a server did not answer, or was not asked: after a failed command the
// driver closes all connections, and other commands get none.
func isAway(err error) bool {
	var unsent driver.RetryablePoolError
	return mongo.IsNetworkError(err) || mongo.IsTimeout(err) || errors.As(err, &unsent)
}

// cleanUp removes the documents of the probes, even after ctx has ended or if no majority
// acknowledges.
func (v *verifier) cleanUp(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
	defer cancel()
	c := v.store.db.Collection(v.store.counters.Name(), options.Collection().SetWriteConcern(writeconcern.W1()))
	if v.scratch {
		err = c.Drop(ctx)
	} else {
		_, err = c.DeleteMany(ctx, byID(field("$in", v.ids)), options.DeleteMany().SetComment(comment(ctx)))
	}
	if err != nil {
		return fmt.Errorf("remove the scratch documents in %s: %w", c.Name(), err)
	}
	return nil
}

// property is a property that the store requires of the server.
type property struct {
	name    string
	follows string // consequence if the server does not have it
	probe   probe
}

// probe checks one property. It returns a measurement for the reader, or an error: a [difference], or the failure
// of a command.
type probe func(v *verifier, ctx context.Context) (string, error)

// row is a write of a counter or a record, and its outcome on MongoDB.
type row struct {
	name  string
	model func(id exchange.CounterID) mongo.WriteModel
	want  exchange.Status
	after bson.M // values of the document afterwards, by path; nil: absent. A nil map: the next row checks it.
}

const (
	etag = 1 << 62             // of a first write; a write that depends on version n sets etag + n
	seq  = 1701012051845120077 // as large as real ones: as a double it equals its neighbours
)

// expire is when the server may delete the documents: a day after the start of the process.
var expire = time.Now().Add(24 * time.Hour).Truncate(time.Millisecond)

type write = exchange.Write

// A server checks the first ten properties when it starts. Exact counts and records depend on the
// first thirteen.
const (
	atStart = 10
	exact   = 13
)

// relied has the properties in the order of docs/deployment.md. A test compares the two.
var relied = []property{
	{"unordered bulk goes on and names each error", "writes that never ran count as written, and counts are lost", bulk(false, exchange.Applied)},
	{"ordered bulk stops at its first error", "the server ignores an option, and perhaps others too", bulk(true, exchange.Unknown)},
	{"versioned upsert of a moved document fails", "instances overwrite each other, and counts are lost or counted twice", upserts([]row{
		{"a first write", counter(write{Versioned: true}), exchange.Applied, bson.M{"version": 1, "etag": etag, "frame": 60_000, "requestCounters.2": 4}},
		{"as seen", counter(write{Versioned: true, Version: 1, Etag: etag}), exchange.Applied, bson.M{"version": 2, "etag": etag + 1, "requestCounters.2": 8}},
		{"another version", counter(write{Versioned: true, Version: 1, Etag: etag + 1}), exchange.Conflict, nil},
		{"another etag", counter(write{Versioned: true, Version: 2, Etag: etag}), exchange.Conflict, bson.M{"version": 2, "requestCounters.2": 8}},
	}, []row{
		{"expired since", counter(write{Versioned: true, Version: 3, Etag: etag}), exchange.Applied, bson.M{"version": 4, "requestCounters.2": 4}},
	})},
	{"fallback filter by the writer's sequence", "a write that is repeated after a lost reply is counted twice, or never", upserts([]row{
		{"a first write by sequence", counter(write{}), exchange.Applied, bson.M{"version": 1, "frame": 60_000, "requestCounters.2": 4, "pruned": nil}},
		{"a writer unknown", counter(write{Writer: "w1"}), exchange.Applied, bson.M{"version": 2, "requestCounters.2": 8, "writers.w0": seq, "writers.w1": seq}},
		{"the same sequence", counter(write{}), exchange.Conflict, nil},
		{"a higher sequence", counter(write{Seq: seq - 1}), exchange.Conflict, nil},
		{"a lower sequence", counter(write{Seq: seq + 1}), exchange.Applied, bson.M{"version": 3, "requestCounters.2": 12, "writers.w0": seq + 1}},
		{"another frame length", counter(write{Seq: seq + 2, Frame: 3_600_000}), exchange.Conflict, nil},
		{"a writer is pruned", counter(write{Seq: seq + 2, Pruned: seq + 2}), exchange.Applied, bson.M{"version": 4, "pruned": seq + 2}},
		{"pruned since", counter(write{Writer: "w2", Seq: seq + 2}), exchange.Conflict, nil},
		{"pruned before", counter(write{Writer: "w2", Seq: seq + 3}), exchange.Applied, bson.M{"version": 5, "writers.w2": seq + 3, "pruned": seq + 2}},
	})},
	{"removal of exactly the values that were read", "counts that arrive during a removal are lost", upserts([]row{
		{"an old writer", counter(write{Versioned: true, Writer: "w1", Seq: 7, Delta: count(1, 5)}), exchange.Applied, bson.M{"requestCounters.1": 5, "writers.w1": 7}},
		{"a new writer", counter(write{Versioned: true, Version: 1, Etag: etag}), exchange.Applied, bson.M{"requestCounters.1": 5, "requestCounters.2": 4}},
		{"a count that has grown", counter(write{Seq: seq + 1, Remove: removal(1, 4, 7)}), exchange.Conflict, nil},
		{"a count that is gone", counter(write{Seq: seq + 1, Remove: removal(3, 5, 7)}), exchange.Conflict, nil},
		{"a writer that has written", counter(write{Seq: seq + 1, Remove: removal(1, 5, 6)}), exchange.Conflict, nil},
		{"removed as seen", counter(write{Seq: seq + 1, Remove: removal(1, 5, 7), Pruned: 7}), exchange.Applied, bson.M{
			"requestCounters.1": nil, "requestCounters.2": 8, "writers.w0": seq + 1, "writers.w1": nil, "pruned": 7,
		}},
	}, []row{
		{"removed from nothing", counter(write{Remove: removal(1, 5, 7)}), exchange.Applied, bson.M{
			"requestCounters.1": nil, "requestCounters.2": 4, "writers.w0": seq, "writers.w1": nil, "frame": 60_000,
		}},
	})},
	{"field order of an embedded _id", "documents of other programs are read as counters, or block them", upserts([]row{
		{"fields in another order", swapped, exchange.Applied, nil},
		{"fields in order", counter(write{Versioned: true}), exchange.Applied, bson.M{"version": 1, "requestCounters.2": 4}},
	})},
	{"$max on dates", "counters expire while they are in use, and counts are lost", upserts([]row{
		{"a first date", counter(write{Versioned: true}), exchange.Applied, bson.M{"expire": bson.NewDateTimeFromTime(expire)}},
		{"an earlier date", counter(write{Versioned: true, Version: 1, Etag: etag, Expire: expire.Add(-time.Hour)}), exchange.Applied, bson.M{"version": 2, "expire": bson.NewDateTimeFromTime(expire)}},
		{"a later date", counter(write{Versioned: true, Version: 2, Etag: etag + 1, Expire: expire.Add(time.Hour)}), exchange.Applied, bson.M{"expire": bson.NewDateTimeFromTime(expire.Add(time.Hour))}},
	})},
	{"$unset beside $inc, all or nothing", "writes are half applied, and counts are wrong", upserts([]row{
		{"an old writer", counter(write{Versioned: true, Writer: "w1", Seq: 7, Delta: count(1, 5)}), exchange.Applied, bson.M{"requestCounters.1": 5, "writers.w1": 7}},
		{"$unset beside $inc", counter(write{Versioned: true, Version: 1, Etag: etag, Remove: removal(1, 5, 7)}), exchange.Applied, bson.M{
			"version": 2, "requestCounters.1": nil, "requestCounters.2": 4, "writers.w0": seq, "writers.w1": nil,
		}},
		{"a rewrite", counter(write{Versioned: true, Version: 2, Etag: etag + 1, Rewrite: true, Delta: count(1, 6)}), exchange.Applied, bson.M{"requestCounters.1": 6, "requestCounters.2": nil}},
		{"one path twice", counter(write{Versioned: true, Version: 3, Etag: etag + 2, Delta: count(1, 7), Remove: removal(1, 6, 7)}), exchange.Rejected, bson.M{"version": 3, "requestCounters.1": 6}},
	})},
	{"$inc exact to 64 bits", "counts change by themselves", upserts([]row{
		{"53 bits", counter(write{Versioned: true, Delta: count(2, 1<<53-3)}), exchange.Applied, bson.M{"requestCounters.2": 1<<53 - 3}},
		{"beyond 53 bits", counter(write{Versioned: true, Version: 1, Etag: etag}), exchange.Applied, bson.M{"requestCounters.2": 1<<53 + 1}},
		{"beyond 64 bits", counter(write{Versioned: true, Version: 2, Etag: etag + 1, Delta: count(2, math.MaxInt64)}), exchange.Rejected, bson.M{"version": 2, "requestCounters.2": 1<<53 + 1}},
	})},
	{"range of _ids", "lists of a client's counters, and resets, miss some counters or include others", (*verifier).rangeOfIDs},
	{"one document under many writers", "counts are lost, and codes or refresh tokens are claimed twice", (*verifier).manyWriters},
	{"records and the trail", "changes overwrite each other, and revocations are lost", upserts([]row{
		{"a new record", record(0, 0), exchange.Applied, bson.M{"version": 1, "nonce": 5, "value.a": 1, "gone": nil}},
		{"a record that is there", record(0, 0), exchange.Conflict, nil},
		{"another record", record(1, 6), exchange.Conflict, nil},
		{"another version", record(2, 5), exchange.Conflict, nil},
		{"a record as seen", record(1, 5), exchange.Applied, bson.M{"version": 2, "value.a": 1}},
		{"the same version", deletion(2), exchange.Conflict, nil},
		{"an older record", deletion(3), exchange.Applied, bson.M{"version": 3, "value": nil, "gone": true}},
		{"a tombstone", record(0, 0), exchange.Applied, bson.M{"version": 1, "value.a": 1, "gone": nil}},
	}, []row{
		{"a first record", deletion(3), exchange.Applied, bson.M{"version": 3, "gone": true}},
	})},
	{"connected to a primary", "reads are stale, and writes are refused", (*verifier).primary},
	{"server time", "one of the two clocks is wrong: instances follow the majority of clocks, and expiry follows the server", (*verifier).serverTime},
	{"TTL indexes", "counters, codes, tokens and sessions stay until someone deletes them", (*verifier).ttl},
}

// counter returns a write of a counter, with usual values for the zero fields of w.
func counter(w write) func(exchange.CounterID) mongo.WriteModel {
	w.NewEtag, w.Writer, w.Seq = etag+w.Version, cmp.Or(w.Writer, "w0"), cmp.Or(w.Seq, seq)
	w.Frame, w.Expire = cmp.Or(w.Frame, 60_000), cmp.Or(w.Expire, expire)
	if w.Delta == nil {
		w.Delta = count(2, 4)
	}
	return func(id exchange.CounterID) mongo.WriteModel { return counterModel(id, &w) }
}

func count(frame, n int64) []exchange.FrameCount {
	return []exchange.FrameCount{{Name: frame, Count: n}}
}

// removal removes a frame and the writer w1, if they still have these values.
func removal(frame, n, seq int64) exchange.Removal {
	return exchange.Removal{Frames: count(frame, n), Writers: []exchange.WriterSeq{{Writer: "w1", Seq: seq}}}
}

// swapped is a first write with the fields of the _id in the other order.
func swapped(id exchange.CounterID) mongo.WriteModel {
	w := counter(write{})(id).(*mongo.UpdateOneModel)
	slices.Reverse(w.Filter.(bson.D)[0].Value.(bson.D))
	return w
}

// record returns a write of a record that depends on a state; zero: there is no record.
func record(version, nonce int64) func(exchange.CounterID) mongo.WriteModel {
	set := bson.D{{Key: "value", Value: field("a", 1)}, {Key: "version", Value: version + 1}, {Key: "nonce", Value: int64(5)}}
	return func(id exchange.CounterID) mongo.WriteModel {
		seen := inState(counterID(id), store.Seen{Version: version, Nonce: nonce})
		return mongo.NewUpdateOneModel().SetFilter(seen).SetUpdate(replacing(set)).SetUpsert(true)
	}
}

// deletion returns the write of a tombstone by an entry of the trail.
func deletion(version int64) func(exchange.CounterID) mongo.WriteModel {
	return func(id exchange.CounterID) mongo.WriteModel {
		return newer(counterID(id), version, tombstone(version, 5))
	}
}

// id returns an ID for a new document.
func (v *verifier) id() exchange.CounterID {
	id := exchange.CounterID{ClientID: v.client, Username: strconv.Itoa(len(v.ids))}
	doc := counterID(id)
	v.ids = append(v.ids, doc, bson.D{doc[1], doc[0]})
	return id
}

// send sends writes in one bulk. It returns the same outcomes as an exchange.
func (v *verifier) send(ctx context.Context, ordered bool, models ...mongo.WriteModel) ([]exchange.Result, error) {
	result, err := v.store.counters.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered).SetComment(comment(ctx)))
	var failed mongo.BulkWriteException
	if err != nil && (!errors.As(err, &failed) || failed.WriteConcernError != nil) {
		return nil, err
	}
	outcomes, _ := counterOutcomes(slices.Repeat([]*write{{}}, len(models)), result, failed)
	return outcomes, nil
}

// upserts returns a probe that sends the writes of each list to one document, one after the other.
func upserts(documents ...[]row) probe {
	return func(v *verifier, ctx context.Context) (string, error) {
		for _, rows := range documents {
			id := v.id()
			for i := range rows {
				if err := v.upsert(ctx, id, &rows[i]); err != nil {
					return "", err
				}
			}
		}
		return "", nil
	}
}

// upsert sends the write of a row and returns how the outcome differs from MongoDB's. A server may
// refuse a write with another error code than MongoDB.
func (v *verifier) upsert(ctx context.Context, id exchange.CounterID, r *row) error {
	got, err := v.send(ctx, false, r.model(id))
	if err != nil {
		return err
	}
	refused := r.want == exchange.Rejected && got[0].Err != nil
	switch {
	case got[0].Status != r.want && !refused:
		return differs("%s: the write is %s, not %s: %v", r.name, got[0].Status, r.want, got[0].Err)
	case r.after == nil:
		return nil
	}
	doc, err := v.store.counters.FindOne(ctx, byID(counterID(id)), options.FindOne().SetComment(comment(ctx))).Raw()
	for path, want := range r.after {
		var value any // nil if it is absent
		_ = doc.Lookup(strings.Split(path, ".")...).Unmarshal(&value)
		if err == nil && fmt.Sprint(value) != fmt.Sprint(want) {
			err = differs("%s: %s is %v, not %v", r.name, path, value, want)
		}
	}
	return err
}

// bulk returns a probe that sends three writes in one bulk. The second one conflicts, and the
// others must get the given status. In a bulk that stops, that is Unknown, because the reply does
// not account for all writes.
func bulk(ordered bool, others exchange.Status) probe {
	return func(v *verifier, ctx context.Context) (string, error) {
		first, next := counter(write{Versioned: true}), counter(write{Versioned: true, Version: 1, Etag: etag})
		a, b := v.id(), v.id()
		_, err := v.send(ctx, ordered, first(a), first(b))
		if err != nil {
			return "", err
		}
		got, err := v.send(ctx, ordered, next(a), first(b), first(v.id()))
		if err == nil && (got[0].Status != others || got[1].Status != exchange.Conflict || got[2].Status != others) {
			err = differs("the second of three writes conflicts, and the reply says: %v", got)
		}
		return "", err
	}
}

// rangeOfIDs lists the counters of one of two clients as a range of _ids. In a scratch collection it also deletes
// the range.
func (v *verifier) rangeOfIDs(ctx context.Context) (string, error) {
	a, b := exchange.CounterID{ClientID: v.client + " range"}, exchange.CounterID{ClientID: v.client + " range next"}
	v.ids = append(v.ids, counterID(a), counterID(b))
	if _, err := v.send(ctx, false, counter(write{})(a), counter(write{})(b)); err != nil {
		return "", err
	}
	has := func(id exchange.CounterID, want int) error {
		list, err := v.store.CountersOf(ctx, id.ClientID, nil, 2)
		if err == nil && len(list) != want {
			err = differs("the range of a client's counters has %d, not %d", len(list), want)
		}
		return err
	}
	err := cmp.Or(has(a, 1), has(b, 1))
	if err == nil && v.scratch {
		err = cmp.Or(v.store.EraseCounters(ctx, a.ClientID, nil), has(a, 0), has(b, 1))
	}
	return "", err
}

// manyWriters inserts and updates one document from many goroutines at the same time, then inserts
// it once more.
func (v *verifier) manyWriters(ctx context.Context) (string, error) {
	const writers = 40
	c, id := v.store.counters, byID("many writers")
	results := make(chan error, writers)
	for range writers {
		go func() {
			_, err := c.UpdateOne(ctx, id, field("$inc", field("n", int64(1))), options.UpdateOne().SetUpsert(true).SetComment(comment(ctx)))
			results <- err
		}()
	}
	counted, failed := 0, error(nil)
	for range writers {
		switch err := <-results; {
		case err == nil:
			counted++
		case !mongo.IsDuplicateKeyError(err): // a duplicate: another goroutine has just inserted the document
			failed = err
		}
	}
	var doc struct{ N int }
	err := c.FindOne(ctx, id, options.FindOne().SetComment(comment(ctx))).Decode(&doc)
	if err = cmp.Or(failed, err); err != nil {
		return "", err
	}
	if counted == 0 || doc.N != counted {
		return "", differs("after %d counts at once there are %d", counted, doc.N)
	}
	_, err = c.InsertOne(ctx, id, options.InsertOne().SetComment(comment(ctx)))
	if mongo.IsDuplicateKeyError(err) {
		return "", nil
	}
	return "", cmp.Or(err, differs("two inserts of one _id have succeeded"))
}

// primary checks whether the server reports itself as a primary, or as a router.
func (v *verifier) primary(ctx context.Context) (string, error) {
	hello, err := v.store.hello(ctx)
	kind := "replica set " + hello.Set
	switch {
	case hello.Msg == "isdbgrid":
		kind = "a router of shards"
	case hello.Set == "":
		kind = "no replica set: acknowledged writes can be lost with the server"
	}
	if err == nil && !hello.Primary && !hello.Master {
		err = differs("it reports that it is not a primary; %s", kind)
	}
	return kind, err
}

// serverTime compares the clock of the server with that of this machine.
func (v *verifier) serverTime(ctx context.Context) (string, error) {
	sent := time.Now()
	now, err := v.store.Now(ctx)
	took := time.Since(sent)
	ahead := now.Sub(sent.Add(took / 2)).Round(time.Millisecond)
	if err == nil && ahead.Abs() > time.Second+took/2 {
		err = differs("%s ahead of ours", ahead)
	}
	return fmt.Sprintf("%s ahead of ours", ahead), err
}

// ttl creates a TTL index and checks that the server kept it. With WaitTTL it also waits until the server deletes
// an expired document and leaves another one. It repeats a poll that fails.
func (v *verifier) ttl(ctx context.Context) (string, error) {
	c := v.store.counters
	index := mongo.IndexModel{Keys: field("expire", 1), Options: options.Index().SetExpireAfterSeconds(0)}
	if _, err := c.Indexes().CreateOne(ctx, index); err != nil {
		return "", err
	}
	kept := func(s mongo.IndexSpecification) bool {
		return s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == 0
	}
	switch specs, err := c.Indexes().ListSpecifications(ctx); {
	case err != nil:
		return "", err
	case !slices.ContainsFunc(specs, kept):
		return "", errors.New("the index was accepted without expireAfterSeconds")
	case v.options.WaitTTL == 0:
		return "the index exists; deletion was not checked (--wait-ttl)", nil
	}
	for id, at := range map[string]time.Time{"expired": expire.Add(-48 * time.Hour), "later": expire} {
		if _, err := c.InsertOne(ctx, append(byID(id), field("expire", at)...)); err != nil {
			return "", err
		}
	}
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for began := time.Now(); ; {
		left := map[string]bool{}
		err := v.store.find(ctx, "verify", c, byID(field("$in", bson.A{"expired", "later"})), options.Find(), func(doc bson.Raw) error {
			left[doc.Lookup("_id").StringValue()] = true
			return nil
		})
		waited := time.Since(began).Round(time.Second)
		switch {
		case err == nil && left["later"] && !left["expired"]:
			return fmt.Sprintf("deleted within %s", max(waited, time.Second)), nil
		case err == nil && !left["later"]:
			return "", differs("a document that has not expired is gone after %s", waited)
		case waited >= v.options.WaitTTL:
			return "", fmt.Errorf("nothing was deleted within %s: %w", waited, cmp.Or(err, errors.New("both documents are there")))
		case v.options.Waiting != nil:
			v.options.Waiting(waited)
		}
		select {
		case <-tick.C:
		case <-v.interrupted:
			return "", nil
		}
	}
}
