package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// counters checks the forms in which counters are written and read.
func (v *verifier) counters(ctx context.Context) error {
	probes := slices.DeleteFunc(v.probes(), func(p probe) bool { return p.alone && !v.alone })
	if err := v.prepare(ctx, probes); err != nil || v.initial == nil {
		return err
	}
	if err := v.run(ctx, func(ctx context.Context) error { return v.writes(ctx, probes) }); err != nil {
		return err
	}
	return v.run(ctx, v.rangeOfIDs)
}

// writes sends two small bulks and all probes in a third, and reads the documents that result.
func (v *verifier) writes(ctx context.Context, probes []probe) error {
	together, err := v.smallBulk(ctx, false)
	if err != nil {
		return err
	}
	if _, err = v.smallBulk(ctx, true); err != nil {
		return err
	}
	v.check(checkVersioned)
	ends, err := v.send(ctx, probes, together)
	if err != nil {
		return err
	}
	v.documents, err = v.readConcern(ctx)
	if err != nil {
		return err
	}
	for i := range probes {
		v.judge(&probes[i], ends[i], v.documents)
	}
	return nil
}

// The documents of the small bulks: that of the second write has another version than its filter.
var (
	smallBulkNames = map[bool]string{false: "unordered", true: "ordered"}
	smallBulkMoved = 1
	smallBulkSize  = 4
)

func smallBulkName(ordered bool, i int) string {
	return smallBulkNames[ordered] + " " + strconv.Itoa(i)
}

// prepare inserts the documents that the checks begin with. If no majority acknowledges that, the
// primary alone does from then on, so that the other checks can be made.
func (v *verifier) prepare(ctx context.Context, probes []probe) error {
	names, docs := v.initialDocuments(probes)
	insert := func(ctx context.Context) error {
		_, err := v.coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false).SetComment(comment(ctx)))
		if err = v.unacknowledged(err); err == nil || mongo.IsDuplicateKeyError(err) { // the attempt before has arrived
			v.initial = names
			return nil
		}
		return fmt.Errorf("insert the scratch documents: %w", err)
	}
	v.check(checkWriteConcern)
	refused := v.run(ctx, insert)
	if refused != nil && !isAnswer(refused) || refused == nil && v.ok(checkWriteConcern) {
		return refused
	}
	v.coll = v.byPrimary()
	if v.initial != nil {
		return nil
	}
	if err := v.run(ctx, insert); err != nil {
		return err
	}
	if refused != nil {
		v.fail(checkWriteConcern, "%v", refused)
	}
	return nil
}

// initialDocuments returns the documents that the probes and the small bulks begin with, and one of
// another client, with their names.
func (v *verifier) initialDocuments(probes []probe) (names []string, docs []any) {
	begins := func(id, before bson.D) {
		names, docs = append(names, id[1].Value.(string)), append(docs, fields(byID(id), before)) //nolint:forcetypeassert // of verifier.id
	}
	for i := range probes {
		id := v.id(probes[i].name)
		if probes[i].swapped {
			v.ids = append(v.ids, bson.D{id[1], id[0]})
		}
		if probes[i].before != nil {
			begins(id, probes[i].before)
		}
	}
	for _, ordered := range []bool{false, true} {
		for i := range smallBulkSize {
			if id := v.id(smallBulkName(ordered, i)); i == smallBulkMoved {
				begins(id, changed(v.seen(), "version", versionSeen+1))
			}
		}
	}
	neighbour := fields(field("clientId", v.client+" next"), field("username", ""))
	v.ids = append(v.ids, neighbour)
	begins(neighbour, v.seen())
	return names, docs
}

// insert adds one scratch document.
func (v *verifier) insert(ctx context.Context, doc bson.D) error {
	_, err := v.coll.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
	return v.unacknowledged(err)
}

// unacknowledged notes that no majority has acknowledged a write. It returns every other error.
func (v *verifier) unacknowledged(err error) error {
	var bulk mongo.BulkWriteException
	var one mongo.WriteException
	var other driver.WriteCommandError // of a command that writes no document
	switch {
	case errors.As(err, &bulk) && len(bulk.WriteErrors) == 0 && bulk.WriteConcernError != nil:
		v.fail(checkWriteConcern, "%v", bulk.WriteConcernError)
	case errors.As(err, &one) && len(one.WriteErrors) == 0 && one.WriteConcernError != nil:
		v.fail(checkWriteConcern, "%v", one.WriteConcernError)
	case errors.As(err, &other) && len(other.WriteErrors) == 0 && other.WriteConcernError != nil:
		v.fail(checkWriteConcern, "%v", other.WriteConcernError)
	default:
		return err
	}
	return nil
}

// smallBulk sends a bulk whose second write conflicts. It reports whether the server did what
// MongoDB does.
func (v *verifier) smallBulk(ctx context.Context, ordered bool) (good bool, err error) {
	number, want := checkUnordered, smallBulkSize-1
	if ordered {
		number, want = checkOrdered, smallBulkMoved
	}
	v.check(number)
	models := make([]mongo.WriteModel, smallBulkSize)
	for i := range models {
		id := fields(field("clientId", v.client), field("username", smallBulkName(ordered, i)))
		models[i] = upsert(id, versioned(versionSeen, etagSeen), v.write())
	}
	result, failed, err := v.bulk(ctx, models, ordered)
	if err != nil {
		return false, v.refused(number, CheckFailed, err)
	}
	ran := 0
	if result != nil {
		ran = int(result.UpsertedCount)
	}
	switch {
	case len(failed) != 1 || failed[0].Index != smallBulkMoved || failed[0].Code != duplicateKey:
		var named []string
		for _, f := range failed {
			named = append(named, fmt.Sprintf("index %d with code %d", f.Index, f.Code))
		}
		v.fail(number, "of %d writes, the one at index %d had moved on, and the server named %s",
			smallBulkSize, smallBulkMoved, cmp.Or(strings.Join(named, ", "), "none"))
	case ran != want:
		v.fail(number, "%d of %d writes were applied, not %d", ran, smallBulkSize, want)
	}
	return v.ok(number), nil
}

func upsert(id, filter, update bson.D) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetFilter(fields(byID(id), filter)).SetUpdate(update).SetUpsert(true)
}

// bulk sends one bulk. The error is that of the whole command.
func (v *verifier) bulk(ctx context.Context, models []mongo.WriteModel, ordered bool) (*mongo.BulkWriteResult, []mongo.BulkWriteError, error) {
	result, err := v.coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered).SetComment(comment(ctx)))
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) {
		return result, nil, err
	}
	if concern := failed.WriteConcernError; concern != nil {
		v.fail(checkWriteConcern, "%v", concern)
	}
	return result, failed.WriteErrors, nil
}

// send sends the probes, in one bulk if together is set and else one by one, and returns the
// outcome of each as the server reported it.
func (v *verifier) send(ctx context.Context, probes []probe, together bool) ([]ending, error) {
	ends := make([]ending, 0, len(probes))
	size := 1
	if together {
		size = len(probes)
	}
	for chunk := range slices.Chunk(probes, size) {
		models := make([]mongo.WriteModel, len(chunk))
		for i := range chunk {
			id := fields(field("clientId", v.client), field("username", chunk[i].name))
			if chunk[i].swapped {
				id = bson.D{id[1], id[0]}
			}
			models[i] = upsert(id, chunk[i].filter, chunk[i].update)
		}
		result, failed, err := v.bulk(ctx, models, false)
		if err != nil && size > 1 {
			return v.send(ctx, probes, false) // it refuses all of them because of one
		}
		if err != nil && !isAnswer(err) {
			return nil, err
		}
		ends = append(ends, endings(len(chunk), result, failed, err)...)
	}
	return ends, nil
}

// endings reads the outcome of each write of a bulk.
func endings(n int, result *mongo.BulkWriteResult, failed []mongo.BulkWriteError, refused error) []ending {
	ends := make([]ending, n)
	if refused != nil { // a bulk of one
		ends[0] = rejected
		return ends
	}
	if result != nil {
		for i := range result.UpsertedIDs {
			ends[i] = inserted
		}
	}
	for _, f := range failed {
		if f.Index < 0 || f.Index >= n {
			continue
		}
		ends[f.Index] = rejected
		if f.Code == duplicateKey {
			ends[f.Index] = conflict
		}
	}
	return ends
}

// readConcern reads all scratch documents with read concern majority. If that is refused, or does
// not find all of them, reads have concern local from then on, so that the other checks can be
// made.
func (v *verifier) readConcern(ctx context.Context) (map[string]bson.Raw, error) {
	v.check(checkReadConcern)
	all := byID(field("$in", v.ids))
	docs, err := v.read(ctx, all)
	if err = v.refused(checkReadConcern, CheckFailed, err); err != nil {
		return nil, err
	}
	missing := 0
	for _, name := range v.initial {
		if docs[name] == nil {
			missing++
		}
	}
	if missing == 0 {
		return docs, nil
	}
	v.fail(checkReadConcern, "%d of %d documents that were acknowledged are not found", missing, len(v.initial))
	v.coll = v.coll.Clone(options.Collection().SetReadConcern(readconcern.Local()))
	return v.read(ctx, all)
}

// judge compares the outcome of a probe with that on MongoDB.
func (v *verifier) judge(p *probe, end ending, docs map[string]bson.Raw) {
	v.check(p.check)
	if end != p.end {
		v.fail(p.check, "%s: the write was %s, not %s", p.name, end, p.end)
		return
	}
	name, unchanged := p.name, p.end == conflict || p.end == rejected
	if p.swapped {
		name += swappedSuffix
		if other := values(docs[p.name]); !maps.Equal(other, valuesOf(p.before)) {
			v.fail(p.check, "%s: the document of the other _id is changed", p.name)
		}
	}
	got, want := values(docs[name]), map[string]string{}
	for path, value := range p.after {
		want[path] = valuesOf(field("v", value))["v"]
	}
	if unchanged {
		want = valuesOf(p.before)
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			v.fail(p.check, "%s: %s is %s, not %s", p.name, path, cmp.Or(got[path], "missing"), cmp.Or(want[path], "missing"))
		}
	}
	if unchanged && len(got) != len(want) {
		v.fail(p.check, "%s: the document is changed", p.name)
	}
}

// String implements fmt.Stringer.
func (e ending) String() string {
	return [...]string{"applied", "inserted", "refused as a duplicate", "refused"}[e]
}

// values returns the values of a document by path, without the _id. Whole numbers of all types are
// alike, and null is left out.
func values(doc bson.Raw) map[string]string {
	all := map[string]string{}
	collect(doc, "", all)
	return all
}

func collect(doc bson.Raw, prefix string, all map[string]string) {
	elements, err := doc.Elements()
	if err != nil {
		return
	}
	for _, e := range elements {
		path, value := prefix+e.Key(), e.Value()
		n, isNumber := whole(value)
		nested, isDocument := value.DocumentOK()
		switch {
		case path == "_id" || value.Type == bson.TypeNull:
		case isDocument:
			collect(nested, path+".", all)
		case isNumber:
			all[path] = strconv.FormatInt(n, 10)
		default:
			all[path] = value.String()
		}
	}
}

func valuesOf(doc bson.D) map[string]string {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	return values(raw)
}
