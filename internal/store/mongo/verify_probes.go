package mongo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
)

// row is an upsert in one of the forms in which counters and records are written, and its outcome on
// MongoDB. The texts are the members of JSON objects, with the names of [verifier.object].
type row struct {
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

// relied has what is relied on, in the order of docs/operating-mongodb.md, with which a test compares it.
var relied = []property{
	{atStart, "unordered bulk goes on and names each error", "writes that never ran are taken for written: counts are lost", bulkOf(false)},
	{atStart, "ordered bulk stops at its first error", "the server ignores an option that it was sent; others may be ignored too", bulkOf(true)},
	{atStart, "versioned upsert of a moved document fails", "instances overwrite each other: counts are lost or counted twice", upserts([]row{
		{"as seen", "", asSeen, write, applied, `"version":4,"etag":8,"requestCounters.2":6,"requestCounters.1":5,"writers.w0":SEQ`},
		{"another version", `"version":4`, asSeen, write, conflict, ""},
		{"another etag", `"etag":NEXT`, asSeen, write, conflict, ""},
		{"a first write", none, unseen, write, inserted, `"version":1,"etag":8,"expire":SOON,"requestCounters.2":4,"writers.w1":null`},
		{"expired since", none, asSeen, write, inserted, `"version":4,"requestCounters.2":4,"requestCounters.1":null`},
	})},
	{atStart, "fallback filter by the writer's sequence", "a write that is sent again after a lost reply is counted twice, or never", upserts([]row{
		{"a writer unknown", `"writers":{"w1":HIGHER}`, fallback, write, applied, `"version":4,"writers.w0":SEQ,"requestCounters.2":6`},
		{"a lower sequence", "", fallback, write, applied, `"version":4,"writers.w0":SEQ,"requestCounters.2":6`},
		{"the same sequence", `"writers":{"w0":SEQ}`, fallback, write, conflict, ""},
		{"a higher sequence", `"writers":{"w0":HIGHER}`, fallback, write, conflict, ""},
		{"another frame length", `"frame":3600000`, fallback, write, conflict, ""},
		{"pruned before", `"pruned":LOWER`, fallback, write, applied, `"version":4,"writers.w0":SEQ,"pruned":LOWER`},
		{"pruned since", `"pruned":SEQ`, fallback, write, conflict, ""},
		{"a first write by sequence", none, fallback, write, inserted, `"version":1,"frame":60000,"requestCounters.2":4,"pruned":null`},
	})},
	{atStart, "removal of what was seen, and only that", "counts that arrive at the time of a removal are lost", upserts([]row{
		{"removed as seen", "", removal, remove, applied, `"requestCounters.1":null,"writers.w1":null,"writers.w0":SEQ,"requestCounters.2":6,"pruned":7`},
		{"a count that has grown", `"requestCounters":{"1":6,"2":2}`, removal, remove, conflict, ""},
		{"a count that is gone", `"requestCounters":{"2":2}`, removal, remove, conflict, ""},
		{"a writer that has written", `"writers":{"w0":LOWER,"w1":8}`, removal, remove, conflict, ""},
		{"removed from nothing", none, removal, remove, inserted, `"requestCounters.1":null,"writers.w1":null,"requestCounters.2":4,"frame":60000`},
	})},
	{atStart, "field order of an embedded _id", "documents of other programs are taken for counters, or refuse them", upserts([]row{
		{"fields in order", swapped, unseen, write, inserted, `"version":1,"requestCounters.2":4`},
	})},
	{atStart, "$max on dates", "counters expire while they are in use: counts are lost", upserts([]row{
		{"an earlier date", "", asSeen, `"$max":{"expire":PAST},"$inc":{"version":1}`, applied, `"version":4,"expire":SOON`},
		{"a later date", "", asSeen, `"$max":{"expire":LATER},"$inc":{"version":1}`, applied, `"version":4,"expire":LATER`},
	})},
	{atStart, "$unset beside $inc, all or nothing", "a write is half applied: counts differ from what was admitted", upserts([]row{
		{"$unset beside $inc", "", asSeen, remove, applied, `"version":4,"requestCounters.2":6,"requestCounters.1":null,"writers.w1":null,"writers.w0":SEQ`},
		{"a rewrite", "", asSeen, `"$inc":{"version":1},"$set":{"requestCounters":{"3":1}}`, applied, `"version":4,"requestCounters.3":1,"requestCounters.1":null`},
		{"one path twice", "", asSeen, `"$inc":{"version":1},"$unset":{"version":""}`, rejected, ""},
	})},
	{atStart, "$inc exact to 64 bits", "a count falls or grows by itself", upserts([]row{
		{"beyond 53 bits", `"requestCounters":{"2":9007199254740989}`, asSeen, write, applied, `"requestCounters.2":9007199254740993`},
		{"beyond 64 bits", `"requestCounters":{"2":9223372036854775807}`, asSeen, write, rejected, ""},
	})},
	{atStart, "range of _ids", "lists of a client's counters, and resets, miss some or reach others", (*verifier).rangeOfIDs},
	{exact, "one document under many writers", "counts are lost, and a code or refresh token is claimed twice", (*verifier).manyWriters},
	{exact, "records and the trail", "changes overwrite each other, and revocations are lost", upserts([]row{
		{"a record as seen", `"nonce":5`, `"version":3,"nonce":5`, record, applied, `"value.a":1,"etag":null`},
		{"another record", `"nonce":6`, `"version":3,"nonce":5`, record, conflict, ""},
		{"a record that is there", "", `"gone":true`, record, conflict, ""},
		{"a tombstone", `"gone":true`, `"gone":true`, record, applied, `"value.a":1,"gone":null`},
		{"a new record", none, `"gone":true`, record, inserted, `"value.a":1,"gone":null`},
		{"the same record", "", older, record, conflict, ""},
		{"an older record", `"version":2`, older, record, applied, `"version":3,"value.a":1`},
		{"a first record", none, older, record, inserted, `"version":3,"value.a":1`},
	})},
	{exact, "connected to a primary", "reads are behind, and writes are refused", (*verifier).primary},
	{convenience, "server time", "one of the two clocks is wrong: instances follow the majority of clocks, and expiry follows the server", (*verifier).serverTime},
	{convenience, "TTL indexes", "counters, codes, tokens and sessions stay for ever: the collections grow until they are deleted by other means", (*verifier).ttl},
}

var (
	names = strings.NewReplacer("ETAG", "4611686018427387905", "NEXT", "4611686018427387906", "LOWER", "1701012051845120076",
		"SEQ", "1701012051845120077", "HIGHER", "1701012051845120078")
	wholeNumbers = regexp.MustCompile(`([:\[])(\d+)`)
)

// object returns the document of JSON members. Numbers are int64, sequences those of a real instance: as doubles
// they are all the same.
func (v *verifier) object(members string) (doc bson.D) {
	text := wholeNumbers.ReplaceAllString("{"+names.Replace(members)+"}", `$1{"$$numberLong":"$2"}`)
	for name, by := range map[string]time.Duration{"SOON": 0, "PAST": -time.Hour, "LATER": time.Hour} {
		text = strings.ReplaceAll(text, name, `{"$date":"`+v.expire.Add(by).UTC().Format(time.RFC3339Nano)+`"}`)
	}
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		panic(err)
	}
	return doc
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

func (v *verifier) find(ctx context.Context, id bson.D) (bson.Raw, error) {
	return v.store.counters.FindOne(ctx, byID(id), options.FindOne().SetComment(comment(ctx))).Raw()
}

// upserts returns the probe of some rows.
func upserts(rows []row) func(*verifier, context.Context) error {
	return func(v *verifier, ctx context.Context) error {
		for i := range rows {
			if err := v.row(ctx, &rows[i]); err != nil {
				return err
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
	doc, err := v.find(ctx, id)
	if err != nil {
		return err
	}
	if want, err := bson.Marshal(before); r.after == "" && (err != nil || !bytes.Equal(doc, want)) {
		return differs("%s: the document is changed", r.name)
	}
	for _, want := range v.object(r.after) {
		var got any // nil if it is absent
		_ = doc.Lookup(strings.Split(want.Key, ".")...).Unmarshal(&got)
		if fmt.Sprint(got) != fmt.Sprint(want.Value) {
			return differs("%s: %s is %v, not %v", r.name, want.Key, got, want.Value)
		}
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
		docs, err := findAll[bson.Raw](ctx, v.store.counters, byID(field("$in", ids)), options.Find())
		if want := map[bool]int{false: 4, true: 2}[ordered]; err == nil && len(docs) != want {
			err = differs("after four writes there are %d documents, not %d", len(docs), want)
		}
		return err
	}
}

// rangeOfIDs lists the counters of a client as a range of _ids, beside those of the next one. In a scratch
// collection it also deletes the range.
func (v *verifier) rangeOfIDs(ctx context.Context) error {
	clients := []string{v.client + " range", v.client + " range next"}
	for _, client := range clients {
		id := counterID(ratelimit.CounterID{ClientID: client, Username: "u"})
		v.ids = append(v.ids, id)
		if _, err := v.insert(ctx, id, ""); err != nil {
			return err
		}
	}
	has := func(client string, want int) error {
		list, err := v.store.CountersOf(ctx, client, nil, 2)
		if err == nil && len(list) != want {
			err = differs("the range of a client's counters has %d, not %d", len(list), want)
		}
		return err
	}
	err := cmp.Or(has(clients[0], 1), has(clients[1], 1))
	if err != nil || v.scratch == "" {
		return err
	}
	return cmp.Or(v.store.EraseCounters(ctx, clients[0], nil), has(clients[0], 0), has(clients[1], 1))
}

// manyWriters lets writers insert one document and count in it at once, and inserts another one with its _id.
func (v *verifier) manyWriters(ctx context.Context) error {
	const writers, each = 8, 5
	id := v.id("many writers")
	count := func() error {
		for n := 0; n < each; {
			end, err := v.upsert(ctx, byID(id), field("$inc", field("n", int64(1))))
			if err != nil || end == rejected {
				return cmp.Or(err, differs("a count was refused"))
			}
			if end != conflict { // otherwise another one has inserted the document meanwhile
				n++
			}
		}
		return nil
	}
	failed := make([]error, writers)
	var wg sync.WaitGroup
	for i := range failed {
		wg.Go(func() { failed[i] = guarded("verify", count) })
	}
	wg.Wait()
	doc, err := v.find(ctx, id)
	if err = cmp.Or(cmp.Or(failed...), err); err != nil {
		return err
	}
	if n, _ := whole(doc.Lookup("n")); n != writers*each {
		return differs("of %d counts of %d writers at once there are %d", writers*each, writers, n)
	}
	if _, err = v.insert(ctx, id, ""); !mongo.IsDuplicateKeyError(err) {
		return cmp.Or(err, differs("two inserts of one _id have succeeded"))
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
	return found(CheckOK, "%s; it answers within %s", kind, took)
}

// serverTime compares the clock of the server with that of this machine.
func (v *verifier) serverTime(ctx context.Context) error {
	sent := time.Now()
	now, err := v.store.Now(ctx)
	if err != nil {
		return found(CheckMissing, "%v", err)
	}
	took := time.Since(sent)
	ahead := now.Sub(sent.Add(took / 2)).Round(time.Millisecond)
	if ahead.Abs() > time.Second+took/2 {
		return differs("%s ahead of ours", ahead)
	}
	return found(CheckOK, "%s ahead of ours", ahead)
}

// ttl creates a TTL index, checks that the server has kept it as one, and may wait until it deletes the one of two
// documents that has expired. A poll that fails is repeated.
func (v *verifier) ttl(ctx context.Context) error {
	const every, progress = 250 * time.Millisecond, 10 * time.Second
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
		return found(CheckMissing, "the index was accepted, and expireAfterSeconds was not kept")
	}
	if v.options.WaitTTL == 0 {
		return found(CheckOK, "the index is kept; whether it deletes was not waited for")
	}
	for id, expire := range map[string]time.Time{"expired": time.Now().Add(-24 * time.Hour), "later": v.expire} {
		if _, err := c.InsertOne(ctx, append(byID(id), field("expire", expire)...)); err != nil {
			return err
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for begun, notice := time.Now(), time.Duration(0); ; {
		left, err := findAll[bson.Raw](ctx, c, byID(field("$in", bson.A{"expired", "later"})), options.Find().SetSort(byID(1)))
		waited := time.Since(begun).Round(time.Second)
		switch {
		case err == nil && len(left) == 1 && left[0].Lookup("_id").StringValue() == "later":
			return found(CheckOK, "deleted within %s", max(waited, time.Second))
		case err == nil && len(left) < 2:
			return differs("a document that has not expired is gone after %s", waited)
		case waited >= v.options.WaitTTL:
			return found(CheckMissing, "nothing was deleted within %s: %v", waited, cmp.Or(err, errors.New("both documents are there")))
		case waited >= notice && v.options.Waiting != nil:
			v.options.Waiting(waited)
			notice = waited + progress
		}
		select {
		case <-tick.C:
		case <-v.interrupted:
			return nil
		}
	}
}
