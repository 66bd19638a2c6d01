package mongo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// row is an upsert in one of the forms in which counters and records are written, and its outcome on
// MongoDB. The texts are the members of JSON objects, with the names of [verifier.object].
type row struct {
	check  int
	name   string
	before string // what the document has instead of the usual; none: there is no document
	filter string // beside the _id
	update string
	want   ending
	after  string // members of the document afterwards, by path; null: absent. Empty: it is as before.
}

type ending string

const (
	applied  ending = "applied"
	inserted ending = "inserted"
	conflict ending = "refused as a duplicate"
	rejected ending = "refused"

	none    = "none"
	swapped = "swapped" // the document that is there has the fields of its _id swapped
)

// The usual document, and parts of filters and updates, as counterwrite.go and record.go write them.
const (
	usual    = `"version":3,"etag":ETAG,"frame":60000,"expire":SOON,"writers":{"w0":LOWER,"w1":7},"requestCounters":{"1":5,"2":2}`
	asSeen   = `"version":3,"etag":ETAG`
	unseen   = `"version":{"$in":[0,null]},"etag":{"$in":[0,null]}`
	fallback = `"frame":60000,"writers.w0":{"$not":{"$gte":SEQ}},"pruned":{"$not":{"$gte":SEQ}}`
	removal  = fallback + `,"requestCounters.1":5,"writers.w1":7`
	older    = `"version":{"$not":{"$gte":3}}`

	write  = `"$inc":{"version":1,"requestCounters.2":4},"$set":{"etag":8,"frame":60000},"$max":{"expire":SOON,"writers.w0":SEQ}`
	remove = `"$unset":{"requestCounters.1":"","writers.w1":""},"$inc":{"version":1,"requestCounters.2":4},"$set":{"etag":8,"frame":60000},` +
		`"$max":{"expire":SOON,"writers.w0":SEQ,"pruned":7}`
	record = `"$set":{"value":{"a":1},"version":3},"$unset":{"gone":"","etag":""},"$currentDate":{"changed":true}`
)

var rows = []row{
	{3, "as seen", "", asSeen, write, applied, `"version":4,"etag":8,"requestCounters.2":6,"requestCounters.1":5,"writers.w0":SEQ`},
	{3, "another version", `"version":4`, asSeen, write, conflict, ""},
	{3, "another etag", `"etag":NEXT`, asSeen, write, conflict, ""},
	{3, "a first write", none, unseen, write, inserted, `"version":1,"etag":8,"expire":SOON,"requestCounters.2":4,"writers.w1":null`},
	{3, "expired since", none, asSeen, write, inserted, `"version":4,"requestCounters.2":4,"requestCounters.1":null`},
	{4, "a writer unknown", `"writers":{"w1":HIGHER}`, fallback, write, applied, `"version":4,"writers.w0":SEQ,"requestCounters.2":6`},
	{4, "a lower sequence", "", fallback, write, applied, `"version":4,"writers.w0":SEQ,"requestCounters.2":6`},
	{4, "the same sequence", `"writers":{"w0":SEQ}`, fallback, write, conflict, ""},
	{4, "a higher sequence", `"writers":{"w0":HIGHER}`, fallback, write, conflict, ""},
	{4, "another frame length", `"frame":3600000`, fallback, write, conflict, ""},
	{4, "pruned before", `"pruned":LOWER`, fallback, write, applied, `"version":4,"writers.w0":SEQ,"pruned":LOWER`},
	{4, "pruned since", `"pruned":SEQ`, fallback, write, conflict, ""},
	{4, "a first write by sequence", none, fallback, write, inserted, `"version":1,"frame":60000,"requestCounters.2":4,"pruned":null`},
	{5, "removed as seen", "", removal, remove, applied, `"requestCounters.1":null,"writers.w1":null,"writers.w0":SEQ,"requestCounters.2":6,"pruned":7`},
	{5, "a count that has grown", `"requestCounters":{"1":6,"2":2}`, removal, remove, conflict, ""},
	{5, "a count that is gone", `"requestCounters":{"2":2}`, removal, remove, conflict, ""},
	{5, "a writer that has written", `"writers":{"w0":LOWER,"w1":8}`, removal, remove, conflict, ""},
	{5, "removed from nothing", none, removal, remove, inserted, `"requestCounters.1":null,"writers.w1":null,"requestCounters.2":4,"frame":60000`},
	{6, "fields in order", swapped, unseen, write, inserted, `"version":1,"requestCounters.2":4`},
	{7, "an earlier date", "", asSeen, `"$max":{"expire":PAST},"$inc":{"version":1}`, applied, `"version":4,"expire":SOON`},
	{7, "a later date", "", asSeen, `"$max":{"expire":LATER},"$inc":{"version":1}`, applied, `"version":4,"expire":LATER`},
	{8, "$unset beside $inc", "", asSeen, remove, applied, `"version":4,"requestCounters.2":6,"requestCounters.1":null,"writers.w1":null,"writers.w0":SEQ`},
	{8, "a rewrite", "", asSeen, `"$inc":{"version":1},"$set":{"requestCounters":{"3":1}}`, applied, `"version":4,"requestCounters.3":1,"requestCounters.1":null`},
	{8, "one path twice", "", asSeen, `"$inc":{"version":1},"$unset":{"version":""}`, rejected, ""},
	{9, "beyond 53 bits", `"requestCounters":{"2":9007199254740989}`, asSeen, write, applied, `"requestCounters.2":9007199254740993`},
	{9, "beyond 64 bits", `"requestCounters":{"2":9223372036854775807}`, asSeen, write, rejected, ""},
	{12, "a record as seen", `"nonce":5`, `"version":3,"nonce":5`, record, applied, `"value.a":1,"etag":null`},
	{12, "another record", `"nonce":6`, `"version":3,"nonce":5`, record, conflict, ""},
	{12, "a record that is there", "", `"gone":true`, record, conflict, ""},
	{12, "a tombstone", `"gone":true`, `"gone":true`, record, applied, `"value.a":1,"gone":null`},
	{12, "a new record", none, `"gone":true`, record, inserted, `"value.a":1,"gone":null`},
	{12, "the same record", "", older, record, conflict, ""},
	{12, "an older record", `"version":2`, older, record, applied, `"version":3,"value.a":1`},
	{12, "a first record", none, older, record, inserted, `"version":3,"value.a":1`},
}

// object returns the document of JSON members. Numbers are int64, sequences those of a real instance: as doubles
// they are all the same.
func (v *verifier) object(members string) (doc bson.D) {
	date := func(by time.Duration) string {
		return `{"$date":"` + v.expire.Add(by).UTC().Format(time.RFC3339Nano) + `"}`
	}
	text := strings.NewReplacer("ETAG", "4611686018427387905", "NEXT", "4611686018427387906", "LOWER", "1701012051845120076",
		"SEQ", "1701012051845120077", "HIGHER", "1701012051845120078", "SOON", date(0), "PAST", date(-time.Hour), "LATER", date(time.Hour),
	).Replace("{" + members + "}")
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		panic(err)
	}
	return long(doc).(bson.D) //nolint:forcetypeassert // as it is given
}

// long returns a value with int64 in the place of int32, as counters have them.
func long(value any) any {
	switch value := value.(type) {
	case bson.D:
		for i := range value {
			value[i].Value = long(value[i].Value)
		}
	case bson.A:
		for i := range value {
			value[i] = long(value[i])
		}
	case int32:
		return int64(value)
	}
	return value
}

// id returns the _id of a scratch document.
func (v *verifier) id(name string) bson.D {
	id := counterID(ratelimit.CounterID{ClientID: v.client, Username: name})
	v.ids = append(v.ids, id)
	return id
}

// insert adds a document with other members than the usual ones, and returns it.
func (v *verifier) insert(ctx context.Context, id bson.D, members string) (bson.D, error) {
	other := v.object(members)
	doc := slices.DeleteFunc(v.object(usual), func(e bson.E) bool {
		return slices.ContainsFunc(other, func(o bson.E) bool { return o.Key == e.Key })
	})
	doc = slices.Concat(byID(id), doc, other)
	_, err := v.store.counters.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
	return doc, err
}

// checkRows returns the probe of the rows of a check.
func checkRows(check int) func(*verifier, context.Context) error {
	return func(v *verifier, ctx context.Context) error {
		for i := range rows {
			if rows[i].check == check {
				if err := v.row(ctx, &rows[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (v *verifier) row(ctx context.Context, r *row) (err error) {
	id := v.id(r.name)
	var before bson.D
	switch r.before {
	case none:
	case swapped:
		other := bson.D{id[1], id[0]}
		v.ids = append(v.ids, other)
		_, err = v.insert(ctx, other, "")
	default:
		before, err = v.insert(ctx, id, r.before)
	}
	if err != nil {
		return err
	}
	end, err := v.upsert(ctx, append(byID(id), v.object(r.filter)...), v.object(r.update))
	if err != nil {
		return err
	}
	if end != r.want {
		return differs("%s: the write was %s, not %s", r.name, end, r.want)
	}
	doc, err := v.store.counters.FindOne(ctx, byID(id), options.FindOne().SetComment(comment(ctx))).Raw()
	if err != nil {
		return cmp.Or(notFound(err), err)
	}
	if want, err := bson.Marshal(before); r.after == "" && (err != nil || !bytes.Equal(doc, want)) {
		return differs("%s: the document is changed", r.name)
	}
	for _, e := range v.object(r.after) {
		got := doc.Lookup(strings.Split(e.Key, ".")...)
		kind, value, err := bson.MarshalValue(e.Value)
		want := bson.RawValue{Type: kind, Value: value}
		n, isNumber := whole(got)
		m, wantsNumber := whole(want)
		if e.Value == nil && got.IsZero() || isNumber && wantsNumber && n == m || err == nil && got.Equal(want) {
			continue
		}
		return differs("%s: %s is %s, not %s", r.name, e.Key, got, want)
	}
	return nil
}

// notFound returns the finding for a document that a reader does not find.
func notFound(err error) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return differs("a document that was written is not found")
	}
	return nil
}

func (v *verifier) upsert(ctx context.Context, filter, update bson.D) (ending, error) {
	result, err := v.store.counters.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true).SetComment(comment(ctx)))
	var failed mongo.WriteException
	switch {
	case err == nil && result.UpsertedCount == 1:
		return inserted, nil
	case err == nil:
		return applied, nil
	case mongo.IsDuplicateKeyError(err):
		return conflict, nil
	case errors.As(err, &failed) && len(failed.WriteErrors) == 1 && !hasCode(err, unauthorized):
		return rejected, nil
	}
	return "", err
}

// bulkOf sends four writes in one bulk: the second one cannot be applied.
func bulkOf(ordered bool) func(*verifier, context.Context) error {
	return func(v *verifier, ctx context.Context) error {
		ids, models := make([]bson.D, 4), make([]mongo.WriteModel, 4)
		for i := range ids {
			ids[i] = v.id(fmt.Sprintf("ordered %t %d", ordered, i))
			filter := append(byID(ids[i]), v.object(asSeen)...)
			models[i] = mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(v.object(write)).SetUpsert(true)
		}
		if _, err := v.insert(ctx, ids[1], `"version":4`); err != nil {
			return err
		}
		_, err := v.store.counters.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered).SetComment(comment(ctx)))
		var bulk mongo.BulkWriteException
		if err != nil && !errors.As(err, &bulk) {
			return err
		}
		if e := bulk.WriteErrors; len(e) != 1 || e[0].Index != 1 || e[0].Code != duplicateKey {
			return differs("of four writes the second one fails, and the reply names %v", e)
		}
		docs, err := findAll[bson.Raw](ctx, v.store.counters, byID(bson.D{{Key: "$in", Value: ids}}), options.Find())
		if want := map[bool]int{false: 4, true: 2}[ordered]; err == nil && len(docs) != want {
			err = differs("after four writes there are %d documents, not %d", len(docs), want)
		}
		return err
	}
}

// rangeOfIDs lists the counters of the client as a range of _ids, beside those of another one. In scratch
// collections it also deletes the range.
func (v *verifier) rangeOfIDs(ctx context.Context) error {
	other := ratelimit.CounterID{ClientID: v.client + " next", Username: "u"}
	v.ids = append(v.ids, counterID(other))
	for _, id := range []bson.D{v.id("in the range"), counterID(other)} {
		if _, err := v.insert(ctx, id, ""); err != nil {
			return err
		}
	}
	has := func(client string, id ratelimit.CounterID) (bool, error) {
		all, err := v.store.CountersOf(ctx, client, nil, len(v.ids)+1)
		return slices.ContainsFunc(all, func(r syncer.Record) bool { return r.ID == id }), err
	}
	ours, err := has(v.client, ratelimit.CounterID{ClientID: v.client, Username: "in the range"})
	foreign, failed := has(v.client, other)
	if err = errors.Join(err, failed); err == nil && (foreign || !ours) {
		err = differs("the range of a client's counters has those of another one, or lacks one")
	}
	if err != nil || v.scratch == "" {
		return err
	}
	err = v.store.EraseCounters(ctx, v.client, nil)
	ours, failed = has(v.client, ratelimit.CounterID{ClientID: v.client, Username: "in the range"})
	foreign, wrong := has(other.ClientID, other)
	if err = errors.Join(err, failed, wrong); err == nil && (ours || !foreign) {
		err = differs("a deleted range has the counters of another client, or lacks one")
	}
	return err
}
