package mongo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/migrations"
)

// all runs every check. Validators come after the writes: they would refuse some of the documents.
func (v *verifier) all(ctx context.Context, o VerifyOptions) error {
	for _, step := range []func(context.Context) error{v.primary, v.serverTime, v.roundTrip} {
		if err := v.run(ctx, step); err != nil {
			return err
		}
	}
	if err := v.counters(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{v.whole, v.upsertByID, v.findAndModify, v.changeStreams, v.ttlIndex, v.validators} {
		if err := v.run(ctx, step); err != nil {
			return err
		}
	}
	switch {
	case !v.ok(checkTTL):
		return nil
	case o.WaitTTL == 0:
		v.find(checkTTL, CheckOK, "the index is kept; whether it deletes was not waited for")
		return nil
	}
	return v.ttlDeletion(ctx, o)
}

// findAndModify sends a heartbeat twice, and compares the documents that are returned.
func (v *verifier) findAndModify(ctx context.Context) error {
	v.check(checkFindAndModify)
	id := v.id("beaten")
	first, err := v.beat(ctx, id)
	if err != nil {
		return v.refused(checkFindAndModify, CheckFailed, err)
	}
	if first != nil {
		v.fail(checkFindAndModify, "the first upsert returned a document: %s", first)
	}
	second, err := v.beat(ctx, id)
	if err != nil {
		return v.refused(checkFindAndModify, CheckFailed, err)
	}
	n, _ := whole(second.Lookup("n"))
	switch {
	case second == nil:
		v.fail(checkFindAndModify, "the second upsert returned no document")
	case n != 1:
		v.fail(checkFindAndModify, "the second upsert returned the count %d, not 1", n)
	case second.Lookup("beaten").Type != bson.TypeDateTime:
		v.fail(checkFindAndModify, "the second upsert returned a document without the date of $currentDate")
	}
	return nil
}

// beat sends a heartbeat and returns the document as it was before. It is nil if there was none.
func (v *verifier) beat(ctx context.Context, id bson.D) (bson.Raw, error) {
	update := fields(field("$inc", field("n", int64(1))), field("$currentDate", field("beaten", true)))
	opts := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.Before).SetComment(comment(ctx))
	old, err := v.coll.FindOneAndUpdate(ctx, byID(id), update, opts).Raw()
	var reply mongo.WriteException
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, nil
	case errors.As(err, &reply): // the driver drops the document
		old, _ = reply.Raw.Lookup("value").DocumentOK()
		err = v.unacknowledged(err)
	}
	return old, err
}

// primary checks whether the server reports itself as a primary, or as a router.
func (v *verifier) primary(ctx context.Context) error {
	v.check(checkPrimary)
	hello, err := v.store.hello(ctx)
	if err != nil {
		return v.refused(checkPrimary, CheckFailed, err)
	}
	var build struct{ Version string }
	if err := v.store.db.RunCommand(ctx, field("buildInfo", 1)).Decode(&build); err != nil && !isAnswer(err) {
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
		v.fail(checkPrimary, "it says that it is none; %s", kind)
		return nil
	}
	v.find(checkPrimary, CheckOK, "version %s, %s", cmp.Or(build.Version, "unknown"), kind)
	return nil
}

// serverTime compares the clock of the server with that of this machine.
func (v *verifier) serverTime(ctx context.Context) error {
	v.check(checkServerTime)
	sent := time.Now()
	now, err := v.store.Now(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		v.find(checkServerTime, CheckMissing, "%v", err)
		return nil
	}
	took := time.Since(sent)
	ahead := now.Sub(sent.Add(took / 2)).Round(time.Millisecond)
	status, side := CheckOK, "ahead of"
	if ahead.Abs() > time.Second+took/2 {
		status = CheckFailed
	}
	if ahead < 0 {
		side = "behind"
	}
	v.find(checkServerTime, status, "%s %s ours", ahead.Abs(), side)
	return nil
}

// roundTrip measures the median of a few pings.
func (v *verifier) roundTrip(ctx context.Context) error {
	v.check(checkRoundTrip)
	pings := make([]time.Duration, 5)
	for i := range pings {
		sent := time.Now()
		if err := v.store.db.RunCommand(ctx, field("ping", 1)).Err(); err != nil {
			return v.refused(checkRoundTrip, CheckMissing, err)
		}
		pings[i] = time.Since(sent)
	}
	slices.Sort(pings)
	v.find(checkRoundTrip, CheckOK, "%s", pings[len(pings)/2].Round(10*time.Microsecond))
	return nil
}

// changeStreams opens one and waits until it reports an insert.
func (v *verifier) changeStreams(ctx context.Context) error {
	v.check(checkChangeStreams)
	stream, err := v.coll.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetComment(comment(ctx)))
	if err != nil {
		return v.refused(checkChangeStreams, CheckMissing, err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	if err = v.insert(ctx, byID(v.id("watched"))); err != nil {
		return v.refused(checkChangeStreams, CheckMissing, err)
	}
	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if !stream.Next(soon) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.find(checkChangeStreams, CheckMissing, "one was opened, and an insert was not reported: %v", stream.Err())
	}
	return nil
}

// validators gives the collection the validator of the counters, and inserts a document that it has
// to refuse.
func (v *verifier) validators(ctx context.Context) error {
	v.check(checkValidators)
	for _, m := range migrations.All() {
		for _, c := range m.Commands {
			if c.Run[0].Key != "collMod" || c.Run[0].Value != v.store.counters.Name() {
				continue
			}
			run := changed(c.Run, "collMod", v.coll.Name())
			if err := v.unacknowledged(v.store.db.RunCommand(ctx, run).Err()); err != nil {
				return v.refused(checkValidators, CheckMissing, err)
			}
		}
	}
	negative := changed(v.seen(), "requestCounters", field(frameNow, int64(-1)))
	if err := v.insert(ctx, fields(byID(v.id("invalid")), negative)); err == nil {
		v.find(checkValidators, CheckMissing, "a validator was accepted, and a document that it forbids as well")
	} else if !isAnswer(err) {
		return err
	}
	return nil
}

// ttlIndex creates a TTL index and checks that the server has kept it as one.
func (v *verifier) ttlIndex(ctx context.Context) error {
	v.check(checkTTL)
	_, err := v.coll.Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: field("expire", 1), Options: options.Index().SetName("expire").SetExpireAfterSeconds(0),
	})
	if err = v.unacknowledged(err); err != nil {
		return v.refused(checkTTL, CheckMissing, err)
	}
	specs, err := v.coll.Indexes().ListSpecifications(ctx)
	if err != nil {
		return v.refused(checkTTL, CheckMissing, err)
	}
	for _, s := range specs {
		if s.Name == "expire" && s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == 0 {
			return nil
		}
	}
	v.find(checkTTL, CheckMissing, "the index was accepted, and expireAfterSeconds was not kept")
	return nil
}

// ttlDeletion waits until the server deletes a document that has expired.
func (v *verifier) ttlDeletion(ctx context.Context, o VerifyOptions) error {
	const past, future = "expired", "not expired"
	v.check(checkTTL)
	ids := bson.A{v.id(past), v.id(future)}
	err := v.run(ctx, func(ctx context.Context) error {
		for i, expire := range []time.Time{time.Now().Add(-24 * time.Hour), v.expire} {
			if err := v.insert(ctx, fields(byID(ids[i]), changed(v.seen(), "expire", expire))); err != nil {
				return v.refused(checkTTL, CheckMissing, err)
			}
		}
		return nil
	})
	if err != nil || !v.ok(checkTTL) {
		return err
	}
	const every, progress = 250 * time.Millisecond, 10 * time.Second
	begun, next := time.Now(), time.Duration(0)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		left, err := v.readWithin(ctx, byID(field("$in", ids)))
		waited := time.Since(begun).Round(time.Second)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && left[future] == nil:
			v.fail(checkTTL, "a document that has not expired is gone after %s", waited)
			return nil
		case err == nil && left[past] == nil:
			v.find(checkTTL, CheckOK, "deleted within %s", max(waited, time.Second))
			return nil
		case err != nil && waited >= o.WaitTTL:
			v.find(checkTTL, CheckMissing, "whether anything was deleted within %s is not known: %v", waited, err)
			return nil
		case waited >= o.WaitTTL:
			v.find(checkTTL, CheckMissing, "nothing was deleted within %s", waited)
			return nil
		case waited >= next && o.Waiting != nil:
			o.Waiting(waited)
			next = waited + progress
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readWithin reads within the timeout of one operation.
func (v *verifier) readWithin(ctx context.Context, filter bson.D) (docs map[string]bson.Raw, err error) {
	err = v.attempt(ctx, func(ctx context.Context) error {
		docs, err = v.read(ctx, filter)
		return err
	})
	return docs, err
}
