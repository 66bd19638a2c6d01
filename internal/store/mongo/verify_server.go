package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
	"oauth-server/migrations"
)

// atOnce calls do n times at the same time, and returns one of the errors.
func atOnce(n int, do func(i int) error) error {
	failed := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { failed[i] = guarded("verify", func() error { return do(i) }) })
	}
	wg.Wait()
	return cmp.Or(failed...)
}

// table is the scratch table.
func (v *verifier) table() store.Table { return store.Table{Name: v.scratch + "records"} }

// manyWriters lets writers create one record, append one entry and count in one document, at once.
func (v *verifier) manyWriters(ctx context.Context) error {
	const writers, each = 8, 5
	var created, appended atomic.Int64
	id := v.id("at once")
	err := atOnce(writers, func(n int) error {
		_, err := v.store.Put(ctx, v.table(), store.Record{Key: "at once", Value: []byte(`{}`)}, store.Seen{})
		if err = won(err, &created); err != nil {
			return err
		}
		_, err = v.store.Append(ctx, store.Entry{Number: 1, At: v.expire, Value: []byte(`{}`)})
		if err = won(err, &appended); err != nil {
			return err
		}
		for seq, conflicts := int64(0), 0; seq < each; {
			w := v.write()
			w.Writer, w.Seq = fmt.Sprint("w", n), probeSeq+seq
			got, err := v.send(ctx, id, w)
			switch {
			case err != nil:
				return err
			case got.Status == syncer.Applied:
				seq++
			case got.Status == syncer.Conflict && conflicts < writers: // another one has inserted the document meanwhile
				conflicts++
			default:
				return differs("a write was %s: %v", got.Status, got.Err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if created.Load() != 1 || appended.Load() != 1 {
		return differs("of %d writers at once, %d have created one record and %d have appended one entry", writers, created.Load(), appended.Load())
	}
	if _, err = v.store.trail.InsertOne(ctx, byID(int64(1))); !mongo.IsDuplicateKeyError(err) {
		return cmp.Or(err, differs("a second insert of one _id succeeded"))
	}
	results, err := v.store.Exchange(ctx, []syncer.Item{{ID: id, Read: true}})
	if r := results[0].Record; err == nil && (r == nil || r.Version != writers*each || r.Frames[0].Count != 4*writers*each) {
		err = differs("of %d writes at once some were lost: %s", writers*each, describe(r))
	}
	return err
}

// won counts the writes that succeeded. A conflict is no error.
func won(err error, n *atomic.Int64) error {
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	if err == nil {
		n.Add(1)
	}
	return err
}

// recordProbe is a step of the probe of records: what it does, whether it conflicts, and which records there are
// afterwards.
type recordProbe struct {
	do       func(ctx context.Context) error
	conflict bool
	records  string
}

// records writes records and entries of the trail, in the order that they have and in others.
func (v *verifier) records(ctx context.Context) error {
	var seen store.Seen
	record := func(key string, version int64) store.Record {
		return store.Record{Key: key, Value: fmt.Appendf(nil, `{"n":%d,"a":[1.5,null]}`, version), Version: version}
	}
	put := func(version int64, state func() store.Seen) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			next, err := v.store.Put(ctx, v.table(), record("put", version), state())
			if err == nil {
				seen = next
			}
			return err
		}
	}
	putAll := func(version int64) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			return v.store.PutAll(ctx, v.table(), []store.Record{record("all", version)})
		}
	}
	writes := func(n int64) []store.Write {
		return []store.Write{
			{Table: v.table(), Record: record("kept", n)},
			{Table: v.table(), Record: store.Record{Key: "gone", Value: []byte(`{}`), Version: n}, Delete: n == 3},
		}
	}
	appends := func(n int64) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := v.store.Append(ctx, store.Entry{Number: n, At: v.expire, Value: []byte(`{}`)}, writes(n)...)
			return err
		}
	}
	for i, step := range []recordProbe{
		{putAll(2), false, "all=2"},
		{putAll(1), false, "all=2"},
		{putAll(3), false, "all=3"},
		{put(1, func() store.Seen { return store.Seen{} }), false, "all=3 put=1"},
		{put(9, func() store.Seen { return store.Seen{} }), true, "all=3 put=1"},
		{put(9, func() store.Seen { return store.Seen{Version: 2, Nonce: seen.Nonce} }), true, "all=3 put=1"},
		{put(9, func() store.Seen { return store.Seen{Version: 1, Nonce: seen.Nonce + 1} }), true, "all=3 put=1"},
		{put(2, func() store.Seen { return seen }), false, "all=3 put=2"},
		{func(ctx context.Context) error { return v.store.DeleteAll(ctx, v.table(), "put") }, false, "all=3"},
		{appends(2), false, "all=3 gone=2 kept=2"},
		{appends(3), false, "all=3 kept=3"},
		{appends(3), true, "all=3 kept=3"},
		{func(ctx context.Context) error { // a writer that was paused
			late, err := newEntryDoc(&store.Entry{Number: 2, Value: []byte(`{}`)}, writes(2))
			return errors.Join(err, v.store.apply(ctx, store.Mark{Number: 2}, late.Writes))
		}, false, "all=3 kept=3"},
	} {
		err := step.do(ctx)
		if step.conflict != errors.Is(err, store.ErrConflict) {
			return cmp.Or(err, differs("step %d: it was applied", i+1))
		}
		if !step.conflict && err != nil {
			return err
		}
		var there []string
		err = v.store.List(ctx, v.table(), store.Query{}, func(r store.Record) error {
			if r.Key != "at once" {
				there = append(there, fmt.Sprint(r.Key, "=", r.Version))
			}
			return r.Err
		})
		if got := strings.Join(there, " "); err == nil && got != step.records {
			err = differs("step %d: the records are %q, not %q", i+1, got, step.records)
		}
		if err != nil {
			return err
		}
	}
	list, newest, err := v.store.Trail(ctx, store.Mark{}, 9)
	if err == nil && (newest.Number != 3 || len(list) != 3) {
		err = differs("the trail has %d entries up to %d, not 3", len(list), newest.Number)
	}
	return err
}

// primary checks whether the server reports itself as a primary, or as a router.
func (v *verifier) primary(ctx context.Context) error {
	sent := time.Now()
	hello, err := v.store.hello(ctx)
	took := time.Since(sent).Round(10 * time.Microsecond)
	if err != nil {
		return err
	}
	kind := "no replica set: what it has acknowledged can be lost with it"
	switch {
	case hello.Msg == "isdbgrid":
		kind = "a router of shards"
	case hello.Set != "":
		kind = "replica set " + hello.Set
	}
	if !hello.Primary && !hello.Master {
		return differs("it says that it is none; %s", kind)
	}
	return measured("%s; it answers within %s", kind, took)
}

// serverTime compares the clock of the server with that of this machine.
func (v *verifier) serverTime(ctx context.Context) error {
	sent := time.Now()
	now, err := v.store.Now(ctx)
	if err != nil {
		return lacks("%v", err)
	}
	took := time.Since(sent)
	ahead := now.Sub(sent.Add(took / 2)).Round(time.Millisecond)
	if ahead.Abs() > time.Second+took/2 {
		return differs("%s ahead of ours", ahead)
	}
	return measured("%s ahead of ours", ahead)
}

// validators gives the collection the validator of the counters.
func (v *verifier) validators(ctx context.Context) error {
	for _, c := range migrations.All()[0].Commands {
		if c.Run[0].Key == "collMod" && c.Run[0].Value == "ratelimits" {
			run := append(bson.D{{Key: "collMod", Value: v.store.counters.Name()}}, c.Run[1:]...)
			return v.store.db.RunCommand(ctx, run).Err()
		}
	}
	return nil
}

// ttl creates a TTL index, checks that the server has kept it as one, and inserts documents for awaitTTL.
func (v *verifier) ttl(ctx context.Context) error {
	c := v.store.counters
	index := mongo.IndexModel{Keys: field("expire", 1), Options: options.Index().SetName("expire").SetExpireAfterSeconds(0)}
	if _, err := c.Indexes().CreateOne(ctx, index); err != nil {
		return err
	}
	specs, err := c.Indexes().ListSpecifications(ctx)
	if err != nil {
		return err
	}
	kept := func(s mongo.IndexSpecification) bool {
		return s.Name == "expire" && s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == 0
	}
	if !slices.ContainsFunc(specs, kept) {
		return lacks("the index was accepted, and expireAfterSeconds was not kept")
	}
	if v.options.WaitTTL > 0 {
		for id, expire := range map[string]time.Time{"expired": time.Now().Add(-24 * time.Hour), "later": v.expire} {
			if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "expire", Value: expire}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitTTL waits until the server deletes the document that has expired. A poll that fails is repeated.
func (v *verifier) awaitTTL(ctx context.Context) error {
	const every, progress = 250 * time.Millisecond, 10 * time.Second
	if v.options.WaitTTL == 0 {
		return measured("the index is kept; whether it deletes was not waited for")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for begun, notice := time.Now(), time.Duration(0); ; {
		left, err := findAll[bson.Raw](ctx, v.store.counters, byID(field("$in", bson.A{"expired", "later"})), options.Find().SetSort(byID(1)))
		waited := time.Since(begun).Round(time.Second)
		switch {
		case err == nil && len(left) == 1 && left[0].Lookup("_id").StringValue() == "later":
			return measured("deleted within %s", max(waited, time.Second))
		case err == nil && len(left) < 2:
			return differs("a document that has not expired is gone after %s", waited)
		case waited >= v.options.WaitTTL:
			return lacks("nothing was deleted within %s: %v", waited, cmp.Or(err, errors.New("both documents are there")))
		case waited >= notice && v.options.Waiting != nil:
			v.options.Waiting(waited)
			notice = waited + progress
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
