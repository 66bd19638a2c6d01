package migrations

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

func fresh(t *testing.T) *mongo.Database {
	t.Helper()
	uri, name := mongotest.Database(t)
	return mongotest.Connect(t, uri).Database(name)
}

func names(list []Migration) (s string) {
	for _, m := range list {
		s += m.String() + " "
	}
	return s
}

func TestUp(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	all := All()
	plan, err := Pending(ctx, db)
	if err != nil || names(plan) != names(all) {
		t.Fatalf("pending on an empty database: %s, %v", names(plan), err)
	}
	if list, err := db.ListCollectionNames(ctx, bson.D{}); err != nil || len(list) > 0 {
		t.Fatalf("planning has made %v, %v", list, err)
	}
	report, err := Up(ctx, db)
	if err != nil || names(report.Applied) != names(all) {
		t.Fatalf("up: %+v, %v", report, err)
	}
	for _, c := range []string{"ratelimits", "grants", "sessions", "revocations", "agreements", "subjects"} {
		checkTTL(t, db.Collection(c), "expire", 0)
	}
	states, err := Status(ctx, db)
	check.OK(t, err)
	for _, s := range states {
		if time.Since(s.AppliedAt) > time.Hour {
			t.Errorf("%s was applied at %s", s.Migration, s.AppliedAt)
		}
	}
	if report, err = Up(ctx, db); err != nil || len(report.Applied)+len(report.Lacking) > 0 {
		t.Errorf("up once more: %+v, %v", report, err)
	}
}

func checkTTL(t *testing.T, c *mongo.Collection, field string, seconds int32) {
	t.Helper()
	specs, err := c.Indexes().ListSpecifications(t.Context())
	check.OK(t, err)
	for _, s := range specs {
		key, _ := bson.Marshal(bson.D{{Key: field, Value: 1}})
		if s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == seconds && bytes.Equal(s.KeysDocument, key) {
			return
		}
	}
	t.Errorf("%s has no TTL index of %d s on %s", c.Name(), seconds, field)
}

// TestUpFromMany starts as many instances do: all at once.
func TestUpFromMany(t *testing.T) {
	db := fresh(t)
	const instances = 16
	errs := make(chan error, instances)
	for range instances {
		go func() {
			_, err := Up(t.Context(), db)
			errs <- err
		}()
	}
	for range instances {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n, err := db.Collection(collection).CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(len(All())) {
		t.Errorf("%d migrations are recorded, %v", n, err)
	}
}

// TestUpAfterCrash: everything was done, but the record was not written.
func TestUpAfterCrash(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	_, err := Up(ctx, db)
	check.OK(t, err)
	check.OK(t, db.Collection(collection).Drop(ctx))
	if report, err := Up(ctx, db); err != nil || len(report.Applied) != len(All()) {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestLacking: what the server does not implement is reported for the optional commands, and is an error
// of the others.
func TestLacking(t *testing.T) {
	db := fresh(t)
	m := Migration{Number: 1, Name: "test", Commands: []Command{
		{About: "Do magic.", Run: bson.D{{Key: "noSuchCommand", Value: 1}}, Optional: true},
		{About: "Create it.", Run: bson.D{{Key: "create", Value: "things"}}},
	}}
	var report Report
	if err := report.apply(t.Context(), db, m); err != nil || len(report.Lacking) != 1 || !strings.Contains(report.Lacking[0], "noSuchCommand") {
		t.Errorf("%q, %v", report.Lacking, err)
	}
	m.Commands[0].Optional = false
	if err := report.apply(t.Context(), db, m); !hasCode(err, 59) || !strings.Contains(err.Error(), "Do magic.") {
		t.Errorf("a command that is needed: %v", err)
	}
}

func TestChanged(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	_, err := Up(ctx, db)
	check.OK(t, err)
	_, err = db.Collection(collection).UpdateByID(ctx, 1, bson.D{{Key: "$set", Value: bson.D{{Key: "checksum", Value: "other"}}}})
	check.OK(t, err)
	if _, err := Status(ctx, db); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "0001_layout") {
		t.Errorf("got %v", err)
	}
}

func TestNewerIsFine(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	_, err := Up(ctx, db)
	check.OK(t, err)
	_, err = db.Collection(collection).InsertOne(ctx, entry{Number: 99, Name: "of_the_future", Checksum: "x"})
	check.OK(t, err)
	if pending, err := Pending(ctx, db); err != nil || len(pending) > 0 {
		t.Errorf("%v, %v", pending, err)
	}
}

func TestCancelled(t *testing.T) {
	db := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Up(ctx, db)
	check.ErrorIs(t, err, context.Canceled)
}

// TestTable: the layout of a table has the indexes that it asks for.
func TestTable(t *testing.T) {
	db := fresh(t)
	var report Report
	m := Migration{Number: 1, Commands: table{name: "things", owner: true, changed: true}.commands()}
	check.OK(t, report.apply(t.Context(), db, m))
	checkTTL(t, db.Collection("things"), "expire", 0)
	specs, err := db.Collection("things").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 4 { // with that of _id
		t.Errorf("%d indexes, %v", len(specs), err)
	}
}

func TestLayout(t *testing.T) {
	for _, m := range All() {
		if m.About == "" || len(m.Checksum()) != 64 || len(m.Commands) == 0 {
			t.Errorf("%s is incomplete: %+v", m, m)
		}
		for _, c := range m.Commands {
			if c.About == "" || len(c.Run) < 2 {
				t.Errorf("%s: %s is incomplete", m, c)
			}
		}
	}
	const want = `{"createIndexes":"ratelimits","indexes":[{"key":{"expire":1},"name":"expire","expireAfterSeconds":0}]}`
	check.Equal(t, "command", All()[0].Commands[0].String(), want)
}

// TestTTL: the server removes what has expired, and only that.
func TestTTL(t *testing.T) {
	db := fresh(t)
	_, err := Up(t.Context(), db)
	check.OK(t, err)
	c := db.Collection("revocations")
	if _, err := c.InsertMany(t.Context(), []any{
		bson.D{{Key: "_id", Value: "past"}, {Key: "expire", Value: time.Now().Add(-time.Second)}},
		bson.D{{Key: "_id", Value: "future"}, {Key: "expire", Value: time.Now().Add(time.Hour)}},
	}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // the test's own deadline bounds the wait for the monitor
		n, err := c.CountDocuments(t.Context(), bson.D{})
		check.OK(t, err)
		if n == 1 {
			break
		}
	}
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "future"}}).Err(); err != nil {
		t.Errorf("the wrong one went: %v", err)
	}
}
