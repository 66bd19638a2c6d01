package mongo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/migrations"
)

// manyWriters lets writers insert one document, and count in another, at once.
func (v *verifier) manyWriters(ctx context.Context) error {
	const writers, each = 8, 5
	var won atomic.Int64
	failed := make([]error, writers)
	one, count := byID(v.id("inserted at once")), byID(v.id("counted at once"))
	write := func() error {
		_, err := v.store.counters.InsertOne(ctx, one, options.InsertOne().SetComment(comment(ctx)))
		if err == nil {
			won.Add(1)
		} else if !mongo.IsDuplicateKeyError(err) {
			return err
		}
		for n := 0; n < each; {
			end, err := v.upsert(ctx, count, field("$inc", field("n", int64(1))))
			switch {
			case err != nil || end == rejected:
				return cmp.Or(err, differs("a count was refused"))
			case end == applied || end == inserted: // otherwise another one has inserted the document meanwhile
				n++
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range failed {
		wg.Go(func() { failed[i] = guarded("verify", write) })
	}
	wg.Wait()
	if err := cmp.Or(failed...); err != nil {
		return err
	}
	doc, err := v.store.counters.FindOne(ctx, count, options.FindOne().SetComment(comment(ctx))).Raw()
	if err != nil {
		return cmp.Or(notFound(err), err)
	}
	if n, _ := whole(doc.Lookup("n")); won.Load() != 1 || n != writers*each {
		return differs("of %d writers at once, %d have inserted one document; of %d counts there are %d", writers, won.Load(), writers*each, n)
	}
	return nil
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
