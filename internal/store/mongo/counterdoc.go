package mongo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/store/exchange"
)

// counterReader reads the document of a counter. Other programs may have written to it, so it keeps
// the fields that are valid and reports the first problem with the others.
type counterReader struct {
	doc     bson.Raw
	record  exchange.Record
	problem string // the first problem
	more    int    // number of further problems
}

// counterRecord returns the record of a document. If a part of the document is not valid, the
// record has a Problem; that is never an error.
func counterRecord(doc bson.Raw) exchange.Record {
	r := counterReader{doc: doc}
	for _, name := range []string{"version", "etag", "frame", counts} {
		if doc.Lookup(name).IsZero() {
			r.complain("%s is missing", name)
		}
	}
	id, _ := doc.Lookup("_id").DocumentOK() // Lookup with two names panics if the document is damaged
	r.record.ID = exchange.CounterID{ClientID: textOf(id, "clientId"), Username: textOf(id, "username"), Limit: textOf(id, "limit")}
	r.record.Version, r.record.Etag = r.number("version", 1), r.number("etag", math.MinInt64)
	r.record.Frame, r.record.Pruned = max(r.number("frame", 0), 0), r.number("pruned", math.MinInt64)
	r.record.Writers = map[string]int64{}
	r.each("writers", r.writer)
	r.each(counts, r.frame)
	slices.SortFunc(r.record.Frames, exchange.ByName)
	r.record.Problem = r.problem
	if r.more > 0 {
		r.record.Problem += fmt.Sprintf(", and %d more", r.more)
	}
	return r.record
}

func (r *counterReader) complain(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
		return
	}
	r.more++
}

// textOf returns a field of an _id. It is empty if the field is absent or no text.
func textOf(id bson.Raw, name string) string {
	s, _ := id.Lookup(name).StringValueOK()
	return s
}

// number reads a whole number, which may be absent.
func (r *counterReader) number(name string, least int64) int64 {
	v := r.doc.Lookup(name)
	n, ok := whole(v)
	switch {
	case v.IsZero():
	case !ok:
		r.complain("%s is not a whole number", name)
	case n < least:
		r.complain("%s is %d", name, n)
	}
	return n
}

// whole returns the value of a whole number of any BSON type that a shell may write, and false for
// any other value. A double beyond 2^53 is not exact, so it is not a whole number.
func whole(v bson.RawValue) (int64, bool) {
	if f, ok := v.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) <= 1<<53
	}
	if n, ok := v.Int32OK(); ok {
		return int64(n), true
	}
	return v.Int64OK()
}

// each calls read for the elements of a document, which may be absent. An unreadable field of
// frames makes the record Damaged, because only a rewrite can remove them.
func (r *counterReader) each(name string, read func(key string, v bson.RawValue)) {
	v := r.doc.Lookup(name)
	if v.IsZero() {
		return
	}
	doc, ok := v.DocumentOK()
	elements, err := doc.Elements()
	if !ok || err != nil {
		r.complain("%s is not a document", name)
		r.record.Damaged = r.record.Damaged || name == counts
	}
	for _, e := range elements {
		read(e.Key(), e.Value())
	}
}

// writer reads an entry of writers.
func (r *counterReader) writer(name string, v bson.RawValue) {
	seq, ok := whole(v)
	switch {
	case !exchange.ValidWriter(name):
		r.complain("%.40q is not a writer name", name)
	case !ok:
		r.complain("the sequence of writer %.40s is not a whole number", name)
	default:
		r.record.Writers[name] = seq
	}
}

// frame reads a count as stored, whatever its size. It leaves out an invalid count. Only a rewrite
// of all frames can remove it, so the record is Damaged.
func (r *counterReader) frame(key string, v bson.RawValue) {
	name, err := strconv.ParseInt(key, 10, 64)
	count, ok := whole(v)
	switch {
	case err != nil || name < 0 || strconv.FormatInt(name, 10) != key:
		r.complain("%.40q is not a frame name", key)
	case !ok:
		r.complain("the count of frame %d is not a whole number", name)
	default:
		r.record.Frames = append(r.record.Frames, exchange.FrameCount{Name: name, Count: count})
		return
	}
	r.record.Damaged = true
}

// counterID returns the _id. The order of its fields is part of it.
func counterID(id exchange.CounterID) bson.D {
	d := bson.D{{Key: "clientId", Value: id.ClientID}, {Key: "username", Value: id.Username}}
	if id.Limit != "" {
		d = append(d, bson.E{Key: "limit", Value: id.Limit})
	}
	return d
}

// counterModel returns the write as an upsert. Without a document, it creates one. If the document
// does not match the filter, it fails because of the duplicate _id.
func counterModel(id exchange.CounterID, w *exchange.Write) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetFilter(counterFilter(id, w)).SetUpdate(counterUpdate(w)).SetUpsert(true)
}

// counterFilter returns the condition of the write. It is never the _id alone: a write that arrives
// late, or twice because a gateway repeated it, would be counted twice.
//
// A versioned write depends on version and etag. The syncer sends one while the document shows no
// other writer. It also sends one if the other kind would not match or not suffice: if the frames
// must be rewritten, if the document does not state their length, or if pruned is ahead of the
// sequence.
//
// Every other write, and so most writes of a shared key, depends on the writer's own sequence,
// which other writers do not change. That is just as exact. The update adds, and the order of
// additions does not matter. It raises the sequence in the same step, so the sequence of an applied
// write never matches again. The filter includes the frames and writers to remove, with the values
// that were read. Every write changes the etag, so a versioned attempt that arrives after its
// repeat does not match either.
//
// The fields that the filter compares by equality become part of a document that the upsert
// creates, before the update is applied. The update sets or removes each of them.
func counterFilter(id exchange.CounterID, w *exchange.Write) bson.D {
	filter := byID(counterID(id))
	if w.Versioned {
		return append(filter, bson.E{Key: "version", Value: sameOrAbsent(w.Version)}, bson.E{Key: "etag", Value: sameOrAbsent(w.Etag)})
	}
	below := bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: w.Seq}}}} // or absent
	filter = append(filter,
		bson.E{Key: "frame", Value: w.Frame},
		bson.E{Key: writerField(w.Writer), Value: below},
		bson.E{Key: "pruned", Value: below})
	for _, f := range w.Remove.Frames {
		filter = append(filter, bson.E{Key: frameField(f.Name), Value: f.Count})
	}
	for _, x := range w.Remove.Writers {
		filter = append(filter, bson.E{Key: writerField(x.Writer), Value: x.Seq})
	}
	return filter
}

// sameOrAbsent returns the condition that a field has the value. 0 also matches an absent field.
func sameOrAbsent(n int64) any {
	if n == 0 {
		return bson.D{{Key: "$in", Value: bson.A{n, nil}}}
	}
	return n
}

// counterUpdate returns the update. It never has two operators on the same path, or on a path and a
// path below it: [exchange.Write.Check] refuses writes that would need them.
func counterUpdate(w *exchange.Write) bson.D {
	inc := bson.D{{Key: "version", Value: int64(1)}}
	set := bson.D{{Key: "etag", Value: w.NewEtag}, {Key: "frame", Value: w.Frame}}
	if w.Rewrite {
		set = append(set, bson.E{Key: counts, Value: wholeCounts(w.Delta)})
	} else {
		for _, f := range w.Delta {
			inc = append(inc, bson.E{Key: frameField(f.Name), Value: f.Count})
		}
	}
	// A copy of this process may have written a higher sequence under its name.
	highest := bson.D{{Key: "expire", Value: w.Expire}, {Key: writerField(w.Writer), Value: w.Seq}}
	if w.Pruned != 0 {
		highest = append(highest, bson.E{Key: "pruned", Value: w.Pruned})
	}
	update := bson.D{{Key: "$inc", Value: inc}, {Key: "$set", Value: set}, {Key: "$max", Value: highest}}
	var unset bson.D
	for _, f := range w.Remove.Frames {
		unset = append(unset, bson.E{Key: frameField(f.Name), Value: ""})
	}
	for _, x := range w.Remove.Writers {
		unset = append(unset, bson.E{Key: writerField(x.Writer), Value: ""})
	}
	if unset != nil {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	if !w.Rewrite && len(w.Delta)+len(w.Remove.Frames) == 0 { // a document without the field is not valid
		update = append(update, bson.E{Key: "$setOnInsert", Value: bson.D{{Key: counts, Value: bson.D{}}}})
	}
	return update
}

func wholeCounts(frames []exchange.FrameCount) bson.D {
	doc := make(bson.D, 0, len(frames))
	for _, f := range frames {
		doc = append(doc, bson.E{Key: strconv.FormatInt(f.Name, 10), Value: f.Count})
	}
	return doc
}

// counts is the name of the field with the count of each frame.
const counts = "requestCounters"

func frameField(name int64) string { return counts + "." + strconv.FormatInt(name, 10) }

func writerField(name string) string { return "writers." + name }

// counterOutcomes returns the outcome of each write of a bulk. It returns an error that concerns
// more than one write.
//
// A reply names the writes that created a document and the writes that failed, and has the number
// of writes that matched a document. The other writes were applied only if the three add up to the
// number of writes. Otherwise their outcome is unknown. So no count is lost if the server stops in
// the middle of a bulk, or sends a reply that is not understood. A result without a status is
// Unknown.
func counterOutcomes(writes []*exchange.Write, result *mongo.BulkWriteResult, bulk mongo.BulkWriteException) ([]exchange.Result, error) {
	outcomes, named := make([]exchange.Result, len(writes)), make([]bool, len(writes))
	accounted := int64(0)
	name := func(i int, o exchange.Result) {
		switch {
		case i < 0 || i >= len(writes):
			return
		case named[i]:
			o = exchange.Result{Err: errors.New("mongo: the reply has two outcomes of the write")}
		default:
			accounted++
		}
		outcomes[i], named[i] = o, true
	}
	others := exchange.Result{Status: exchange.Applied}
	if e := bulk.WriteConcernError; e != nil { // applied, but they can still be rolled back
		others = exchange.Result{Err: fmt.Errorf("no majority has confirmed the write: %w", described(e.Code, e.Name, e.Message))}
	}
	if result != nil {
		accounted = result.MatchedCount
		for i := range result.UpsertedIDs {
			created := others
			if i >= 0 && i < int64(len(writes)) && writes[i].Versioned && (writes[i].Version != 0 || writes[i].Etag != 0) {
				// The condition did not hold, but the write is counted. If it is sent again, its
				// own sequence stops it.
				created = exchange.Result{Err: errors.New("mongo: the counter had expired; the write recreated it")}
			}
			name(int(i), created)
		}
	}
	for _, e := range bulk.WriteErrors {
		name(e.Index, refusal(e.WriteError))
	}
	if accounted != int64(len(writes)) {
		others = exchange.Result{Err: errors.Join(others.Err, fmt.Errorf("the reply accounts for %d of %d writes", accounted, len(writes)))}
	}
	for i := range writes {
		if !named[i] {
			outcomes[i] = others
		}
	}
	return outcomes, others.Err
}

const duplicateKey = 11000

// refusedForGood has the codes of errors that the same write would cause each time.
// https://www.mongodb.com/docs/manual/reference/error-codes/
var refusedForGood = map[int]bool{
	2:     true, // BadValue: also a count beyond 64 bits
	9:     true, // FailedToParse
	14:    true, // TypeMismatch: a count that is not a number
	22:    true, // InvalidBSON
	28:    true, // PathNotViable: through a value that is not a document
	40:    true, // ConflictingUpdateOperators
	52:    true, // DollarPrefixedFieldName
	54:    true, // NotSingleValueField
	56:    true, // EmptyFieldName
	57:    true, // DottedFieldName
	66:    true, // ImmutableField
	121:   true, // DocumentValidationFailure
	10334: true, // BSONObjectTooLarge
	17280: true, // KeyTooLong
	17419: true, // the document would become too large
	17420: true, // the same for a new document
}

// refusal returns the outcome of a write for which the server reports an error.
func refusal(e mongo.WriteError) exchange.Result {
	codeName, _ := e.Raw.Lookup("codeName").StringValueOK()
	err := described(e.Code, codeName, e.Message)
	switch {
	case e.Code == duplicateKey:
		return exchange.Result{Status: exchange.Conflict}
	case refusedForGood[e.Code] || failedValidation(codeName, e.Message):
		return exchange.Result{Status: exchange.Rejected, Err: err}
	default: // such as a deadlock: perhaps not applied, but not refused permanently
		return exchange.Result{Status: exchange.Unknown, Err: err}
	}
}

// failedValidation recognises a failed validation by its name, because compatible servers use other
// codes for it. The message must begin with the name: the rest may quote a username.
func failedValidation(codeName, message string) bool {
	const name = "DocumentValidationFailure"
	return codeName == name || strings.HasPrefix(message, name) || strings.HasPrefix(message, "Document failed validation")
}

// maxMessage is how much of a server's message an error repeats, in bytes.
const maxMessage = 100

// described returns the error of a reply for the log. It leaves out the parts of the document that
// the server quotes: the _id of a counter contains a username.
func described(code int, codeName, message string) error {
	if i := strings.IndexAny(message, `{"`); i >= 0 {
		message = message[:i]
	}
	message = strings.TrimSpace(strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""))
	if codeName != "" {
		return fmt.Errorf("mongo: code %d (%s): %s", code, codeName, message)
	}
	return fmt.Errorf("mongo: code %d: %s", code, message)
}
