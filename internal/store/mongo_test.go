package store_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
)

// mongoStore is a store with its location, of the form "URI database".
type mongoStore struct {
	*mongo.Store
	location string
}

func openMongo(ctx context.Context, location string) (backend, error) {
	uri, database, _ := strings.Cut(location, " ")
	s, err := mongo.Open(ctx, mongo.Options{URI: uri, Database: database})
	return &mongoStore{s, location}, err
}

// collection returns a collection for changes behind the back of the store.
func (s *mongoStore) collection(t *testing.T, name string) *driver.Collection {
	t.Helper()
	uri, database, _ := strings.Cut(s.location, " ")
	return mongotest.Connect(t, uri).Database(database).Collection(name)
}

// set sets fields of a document and bypasses the validator.
func (s *mongoStore) set(t *testing.T, collection string, id any, set bson.D) {
	t.Helper()
	update := bson.D{{Key: "$set", Value: set}}
	_, err := s.collection(t, collection).UpdateByID(t.Context(), id, update, options.UpdateOne().SetBypassDocumentValidation(true))
	check.OK(t, err)
}

var inMongoDB = target{
	Name: "mongo",
	Location: func(t *testing.T) string {
		t.Helper()
		uri, database := mongotest.Database(t)
		s, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Database: database})
		check.OK(t, err)
		defer func() { _ = s.Close() }()
		_, err = s.Migrate(t.Context())
		check.OK(t, err)
		return uri + " " + database
	},
	Open:   openMongo,
	Shared: true,
	Many:   800, // the stand-in is slow with more
	// Sweep does what the TTL monitor of the server does. The store never removes documents itself, so no clock of an
	// instance decides which ones are deleted.
	Sweep: func(t *testing.T, b backend, now time.Time) {
		t.Helper()
		database := b.(*mongoStore).collection(t, "ratelimits").Database()
		for _, name := range []string{plain.Name, owned.Name, trailed.Name, "ratelimits"} {
			expired := bson.D{{Key: "expire", Value: bson.D{{Key: "$lt", Value: now}}}}
			_, err := database.Collection(name).DeleteMany(t.Context(), expired)
			check.OK(t, err, "sweep")
		}
	},
	Faulty: func(t *testing.T, location string) (backend, Faults) {
		t.Helper()
		uri, database, _ := strings.Cut(location, " ")
		p := mongotest.NewProxy(t, uri)
		b, err := openMongo(t.Context(), p.URI+" "+database)
		check.OK(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b, Faults{
			Lose: func(command int, whole bool) { lose(p, command, whole) },
			Hold: func(command int) (<-chan struct{}, func()) { return hold(p, command) },
		}
	},
	Age: func(t *testing.T, b backend, table store.Table, key string, by time.Duration) {
		t.Helper()
		b.(*mongoStore).set(t, table.Name, key, bson.D{{Key: "changed", Value: time.Now().Add(-by)}})
	},
	Spoil: map[string]func(t *testing.T, b backend, table store.Table, key string){
		"edited by hand": spoilDocument(bson.D{{Key: "value", Value: "text"}, {Key: "version", Value: "one"}, {Key: "nonce", Value: nil}}),
		"other type":     spoilDocument(bson.D{{Key: "expire", Value: "tomorrow"}, {Key: "owner", Value: 7}, {Key: "changed", Value: "now"}}),
		"neither gone":   spoilDocument(bson.D{{Key: "gone", Value: "yes"}}),
		"other value":    spoilDocument(bson.D{{Key: "value.at", Value: bson.NewObjectID()}}),
		"truncated": func(t *testing.T, b backend, table store.Table, key string) {
			t.Helper()
			_, err := b.(*mongoStore).collection(t, table.Name).ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: key}}, bson.D{})
			check.OK(t, err)
		},
	},
	SpoilEntry: map[string]func(t *testing.T, b backend, number int64){
		"edited by hand": spoilInTrail(bson.D{{Key: "value", Value: "text"}, {Key: "at", Value: "yesterday"}, {Key: "refs", Value: 7}}),
		"other type":     spoilInTrail(bson.D{{Key: "at", Value: 7}}),
		"truncated":      spoilInTrail(bson.D{{Key: "nonce", Value: nil}}),
	},
}

func spoilDocument(set bson.D) func(t *testing.T, b backend, table store.Table, key string) {
	return func(t *testing.T, b backend, table store.Table, key string) {
		t.Helper()
		b.(*mongoStore).set(t, table.Name, key, set)
	}
}

func spoilInTrail(set bson.D) func(t *testing.T, b backend, number int64) {
	return func(t *testing.T, b backend, number int64) {
		t.Helper()
		b.(*mongoStore).set(t, "trail", number, set)
	}
}

// writes are the names of the commands that change data.
var writes = map[string]bool{"update": true, "insert": true, "delete": true, "findAndModify": true, "bulkWrite": true}

// lose breaks the given writing command, counted from now.
func lose(p *mongotest.Proxy, command int, whole bool) {
	fault := mongotest.LoseReply
	if whole {
		fault = mongotest.LoseRequest
	}
	p.Decide(func(name string) mongotest.Fault { // called with a lock held
		if writes[name] {
			if command--; command == 0 {
				return fault
			}
		}
		return mongotest.Pass
	})
}

// hold delays the given writing command, counted from now.
func hold(p *mongotest.Proxy, command int) (reached <-chan struct{}, release func()) {
	var mu sync.Mutex
	come, released := make(chan struct{}), make(chan struct{})
	p.Alter(mongotest.Alteration{Request: func(request bson.D) bson.D {
		mu.Lock()
		held := false
		if writes[request[0].Key] {
			command--
			held = command == 0
		}
		mu.Unlock()
		if held {
			close(come)
			<-released
		}
		return request
	}})
	return come, sync.OnceFunc(func() { close(released) })
}
