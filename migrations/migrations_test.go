package migrations

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

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
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
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
	for _, c := range []string{"ratelimits", "grants", "sessions", "revocations", "reports", "agreements", "subjects"} {
		checkTTL(t, db.Collection(c), "expire", 0)
	}
	checkTTL(t, db.Collection("instances"), "beaten", 24*60*60)
	states, err := Status(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		key, _ := bson.Marshal(bson.D{{Key: field, Value: 1}})
		if s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == seconds && bytes.Equal(s.KeysDocument, key) {
			return
		}
	}
	t.Errorf("%s has no TTL index of %d s on %s", c.Name(), seconds, field)
}

// released is how many migrations there are.
const released = 11

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
	if n, err := db.Collection(collection).CountDocuments(t.Context(), bson.D{}); err != nil || n != released {
		t.Errorf("%d migrations are recorded, %v", n, err)
	}
}

// TestUpAfterCrash: everything was done, but the record was not written.
func TestUpAfterCrash(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	if _, err := Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if err := db.Collection(collection).Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if report, err := Up(ctx, db); err != nil || len(report.Applied) != released {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestLacking: what the server does not implement is reported once for the optional commands, and
// is an error of the others.
func TestLacking(t *testing.T) {
	db := fresh(t)
	m := Migration{Number: 1, Name: "test", Commands: []Command{
		{About: "Do magic.", Run: bson.D{{Key: "noSuchCommand", Value: 1}}, Optional: true},
		{About: "Create it.", Run: bson.D{{Key: "create", Value: "things"}}},
	}}
	lacking, err := apply(t.Context(), db, m)
	if said := sentences(lacking); err != nil || len(said) != 1 || !strings.Contains(said[0], "noSuchCommand") || !strings.Contains(said[0], "0001_test") {
		t.Errorf("%q, %v", said, err)
	}
	m.Commands[0].Optional = false
	if _, err := apply(t.Context(), db, m); !hasCode(err, 59) || !strings.Contains(err.Error(), "Do magic.") {
		t.Errorf("a command that is needed: %v", err)
	}
}

func TestChanged(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	if _, err := Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	_, err := db.Collection(collection).UpdateByID(ctx, 2, bson.D{{Key: "$set", Value: bson.D{{Key: "checksum", Value: "other"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Status(ctx, db); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "0002_grants") {
		t.Errorf("got %v", err)
	}
}

func TestNewerIsFine(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	if _, err := Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection(collection).InsertOne(ctx, entry{Number: 99, Name: "of_the_future", Checksum: "x"}); err != nil {
		t.Fatal(err)
	}
	if pending, err := Pending(ctx, db); err != nil || len(pending) > 0 {
		t.Errorf("%v, %v", pending, err)
	}
}

func TestCancelled(t *testing.T) {
	db := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Up(ctx, db); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCatalogue(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.About == "" || len(m.Checksum) != 64 || len(m.Commands) == 0 {
			t.Errorf("%s is incomplete: %+v", m, m)
		}
	}
	if got, want := all[0].Commands[0].String(), `{"create":"ratelimits"}`; got != want {
		t.Errorf("a command reads %s, want %s", got, want)
	}
}

func TestLoadRefuses(t *testing.T) {
	good := `{"about": "A.", "commands": [{"about": "B.", "run": {"create": "c"}}]}`
	for _, test := range []struct {
		name, file, content, says string
	}{
		{"a gap", "0002_a.json", good, "number 1 is due"},
		{"a name without number", "a.json", good, "0001_name.json"},
		{"no JSON", "0001_a.json", "nonsense", "invalid character"},
		{"an unknown field", "0001_a.json", `{"about": "A.", "comands": []}`, "unknown field"},
		{"a command without a word", "0001_a.json", `{"commands": [{"run": {"create": "c"}}]}`, "commands[0]"},
		{"no command", "0001_a.json", `{"commands": [{"about": "B.", "run": {}}]}`, "commands[0]"},
		{"no document", "0001_a.json", `{"commands": [{"about": "B.", "run": 7}]}`, "commands[0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(fstest.MapFS{test.file: {Data: []byte(test.content)}})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// TestTTL: the server removes what has expired, and only that.
func TestTTL(t *testing.T) {
	db := fresh(t)
	if _, err := Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
	}
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "future"}}).Err(); err != nil {
		t.Errorf("the wrong one went: %v", err)
	}
}
