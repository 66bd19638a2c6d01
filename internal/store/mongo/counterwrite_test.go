package mongo

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
)

// TestCounterOutcomes: a write is applied only if the reply as a whole allows no other
// interpretation.
func TestCounterOutcomes(t *testing.T) {
	const unknown, applied, conflict, rejected = exchange.Unknown, exchange.Applied, exchange.Conflict, exchange.Rejected
	result := func(matched int64, upserted ...int64) *mongo.BulkWriteResult {
		r := &mongo.BulkWriteResult{MatchedCount: matched, UpsertedCount: int64(len(upserted)), UpsertedIDs: map[int64]any{}}
		for _, i := range upserted {
			r.UpsertedIDs[i] = "id"
		}
		return r
	}
	failed := func(indexAndCode ...int) (list []mongo.BulkWriteError) {
		for i := 0; i < len(indexAndCode); i += 2 {
			list = append(list, mongo.BulkWriteError{WriteError: mongo.WriteError{Index: indexAndCode[i], Code: indexAndCode[i+1]}})
		}
		return list
	}
	lagging := &mongo.WriteConcernError{Code: 64, Message: "waiting for replication timed out"}
	// The writes: 0 and 1 unversioned, 2 versioned on no document, 3 on one.
	for _, test := range []struct {
		name   string
		result *mongo.BulkWriteResult
		errors []mongo.BulkWriteError
		lag    *mongo.WriteConcernError
		want   [4]exchange.Status
		fails  bool // for all
	}{
		{"all matched", result(4), nil, nil, [4]exchange.Status{applied, applied, applied, applied}, false},
		{"some created", result(2, 0, 2), nil, nil, [4]exchange.Status{applied, applied, applied, applied}, false},
		{"one that was based on a document created it", result(3, 3), nil, nil, [4]exchange.Status{applied, applied, applied, unknown}, false},
		{"conflicts", result(2), failed(0, 11000, 3, 11000), nil, [4]exchange.Status{conflict, applied, applied, conflict}, false},
		{"all kinds", result(1, 2), failed(0, 11000, 3, 121), nil, [4]exchange.Status{conflict, applied, applied, rejected}, false},
		{"an error of another kind", result(3), failed(1, 112), nil, [4]exchange.Status{applied, unknown, applied, applied}, false},
		{"broken off at the first error", result(1), failed(1, 11000), nil, [4]exchange.Status{unknown, conflict, unknown, unknown}, true},
		{"broken off, with one created", result(0, 0), failed(1, 11000), nil, [4]exchange.Status{applied, conflict, unknown, unknown}, true},
		{"one is not accounted for", result(3), nil, nil, [4]exchange.Status{}, true},
		{"more than there are", result(5), nil, nil, [4]exchange.Status{}, true},
		{"nothing at all", result(0), nil, nil, [4]exchange.Status{}, true},
		{"no result", nil, failed(1, 11000), nil, [4]exchange.Status{unknown, conflict, unknown, unknown}, true},
		{"an error of no write", result(4), failed(4, 11000, -1, 11000), nil, [4]exchange.Status{applied, applied, applied, applied}, false},
		{"a creation of no write", result(3, 4, -1), nil, nil, [4]exchange.Status{}, true},
		{"one created and failed", result(3, 0), failed(0, 11000), nil, [4]exchange.Status{unknown, applied, applied, applied}, false},
		{"one failed twice", result(3), failed(0, 11000, 0, 121), nil, [4]exchange.Status{unknown, applied, applied, applied}, false},
		{"no majority", result(2, 0, 3), nil, lagging, [4]exchange.Status{}, true},
		{"no majority, and refusals", result(1, 0), failed(1, 11000, 3, 121), lagging, [4]exchange.Status{unknown, conflict, unknown, rejected}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			writes := []*exchange.Write{{}, {}, {Versioned: true}, {Versioned: true, Version: 3, Etag: 4}}
			outcomes, err := counterOutcomes(writes, test.result, mongo.BulkWriteException{WriteErrors: test.errors, WriteConcernError: test.lag})
			var got [4]exchange.Status
			for i, o := range outcomes {
				if got[i] = o.Status; (o.Status == unknown || o.Status == rejected) != (o.Err != nil) {
					t.Errorf("write %d is %s because of %v", i, o.Status, o.Err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	codeName := func(name string) bson.Raw {
		raw, _ := bson.Marshal(bson.D{{Key: "codeName", Value: name}})
		return raw
	}
	for _, test := range []struct {
		name string
		e    mongo.WriteError
		want exchange.Status
	}{
		{"duplicate _id", mongo.WriteError{Code: 11000}, exchange.Conflict},
		{"validation", mongo.WriteError{Code: 121, Message: "Document failed validation"}, exchange.Rejected},
		{"validation, by name", mongo.WriteError{Code: 3, Raw: codeName("DocumentValidationFailure")}, exchange.Rejected},
		{"validation, by message", mongo.WriteError{Code: 3, Message: "Document failed validation: requestCounters"}, exchange.Rejected},
		{"validation, by name in the message", mongo.WriteError{Code: 3, Message: "DocumentValidationFailure (…)"}, exchange.Rejected},
		{"a user of that name", mongo.WriteError{Code: 112, Message: `WriteConflict on { username: "DocumentValidationFailure" }`}, exchange.Unknown},
		{"another name", mongo.WriteError{Code: 3, Raw: codeName("LockTimeout")}, exchange.Unknown},
		{"a count beyond 64 bits", mongo.WriteError{Code: 2}, exchange.Rejected},
		{"no number", mongo.WriteError{Code: 14}, exchange.Rejected},
		{"no document", mongo.WriteError{Code: 28}, exchange.Rejected},
		{"two operators on a path", mongo.WriteError{Code: 40}, exchange.Rejected},
		{"too large", mongo.WriteError{Code: 17419}, exchange.Rejected},
		{"a deadlock", mongo.WriteError{Code: 112}, exchange.Unknown},
		{"the primary steps down", mongo.WriteError{Code: 189}, exchange.Unknown},
		{"without a code", mongo.WriteError{}, exchange.Unknown},
	} {
		if got := refusal(test.e); got.Status != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.Status, test.want)
		}
	}
}

// TestNoUsernameInErrors: the error of a refused write is logged, so it describes the problem but
// not the user.
func TestNoUsernameInErrors(t *testing.T) {
	named, _ := bson.Marshal(bson.D{{Key: "codeName", Value: "TypeMismatch"}})
	for _, test := range []struct {
		e    mongo.WriteError
		want string
	}{
		{
			mongo.WriteError{Code: 14, Raw: named, Message: `Cannot apply $inc to a value of non-numeric type. {_id: {"username":"alice@example.org"}}`},
			"mongo: code 14 (TypeMismatch): Cannot apply $inc to a value of non-numeric type.",
		},
		{mongo.WriteError{Code: 14, Message: `not a number: "alice@example.org"`}, "mongo: code 14: not a number:"},
		{mongo.WriteError{Code: 112, Message: strings.Repeat("x", 99) + "é"}, "mongo: code 112: " + strings.Repeat("x", 99)},
		{mongo.WriteError{Code: 112}, "mongo: code 112: "},
	} {
		check.Equal(t, "error", refusal(test.e).Err.Error(), test.want)
	}
	s, direct, _ := throughProxy(t)
	putDocument(t, direct, bson.D{
		{Key: "_id", Value: counterID(hotID)},
		{Key: "version", Value: int64(1)},
		{Key: "etag", Value: int64(1)},
		{Key: "frame", Value: int64(60_000)},
		{Key: counts, Value: bson.D{{Key: strconv.Itoa(aFrame), Value: "2"}}},
	})
	r, err := writeOne(t.Context(), s, hotID, aWrite("me", 1, 1))
	if err != nil || r.Status != exchange.Rejected || strings.Contains(r.Err.Error(), hotID.Username) || !strings.Contains(r.Err.Error(), "$inc") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStrangeReplies: a reply that no server should send leaves the writes unknown, and does not
// crash the process.
func TestStrangeReplies(t *testing.T) {
	duplicate := func(index any) bson.A {
		return bson.A{bson.D{{Key: "index", Value: index}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000"}}}
	}
	items := func() (list []exchange.Item) {
		for k := range 3 {
			list = append(list, exchange.Item{ID: keyID(k), Write: aWrite("me", 1, 1)})
		}
		return list
	}
	for name, test := range map[string]struct {
		reply bson.D
		want  [3]exchange.Status
	}{
		"fewer than were sent":    {bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 2}, {Key: "nModified", Value: 2}}, [3]exchange.Status{}},
		"no number":               {bson.D{{Key: "ok", Value: 1}}, [3]exchange.Status{}},
		"broken off":              {bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: duplicate(0)}}, [3]exchange.Status{exchange.Conflict}},
		"an error of no write":    {bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 2}, {Key: "writeErrors", Value: duplicate(99)}}, [3]exchange.Status{}},
		"an error below zero":     {bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 2}, {Key: "writeErrors", Value: duplicate(-1)}}, [3]exchange.Status{}},
		"a failure of everything": {bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 13}, {Key: "errmsg", Value: "not authorized"}}, [3]exchange.Status{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openFake(t, test.reply)
			results, err := s.Exchange(t.Context(), items())
			if err == nil || len(results) != 3 {
				t.Fatalf("got %+v, %v", results, err)
			}
			for i, want := range test.want {
				check.Equal(t, fmt.Sprint("write ", i), results[i].Status, want)
			}
		})
	}
}

// openFake opens a store on a server that sends the same reply to everything.
func openFake(t *testing.T, reply bson.D) *Store {
	t.Helper()
	client, err := mongo.Connect(clientOptions("mongodb://" + fakeServer(t, reply)))
	check.OK(t, err)
	s := newStore(client, "x")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestReadBrokenOff: the server returns one part and fails to return the rest. The part counts, and
// the rest is unknown.
func TestReadBrokenOff(t *testing.T) {
	s := openFake(t, bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(5)}, {Key: "ns", Value: "x.ratelimits"}, {Key: "firstBatch", Value: bson.A{sound()}},
	}}})
	results, err := s.Exchange(t.Context(), []exchange.Item{{ID: hotID, Read: true}, {ID: keyID(1), Read: true}})
	if err == nil || len(results) != 2 {
		t.Fatalf("got %+v, %v", results, err)
	}
	if r := results[0]; !r.Read || r.Record == nil || r.Record.Version != 3 {
		t.Errorf("the part that was returned: %+v", r)
	}
	if r := results[1]; r.Read || r.Record != nil {
		t.Errorf("the rest: %+v", r)
	}
}
