package mongo

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/store/storetest"
)

// target uses locations of the form "URI database".
var target = storetest.Target{
	Location: location,
	Open: func(ctx context.Context, location string) (storetest.Backend, error) {
		uri, database, _ := strings.Cut(location, " ")
		return Open(ctx, Options{URI: uri, Database: database})
	},
	Shared: true,
	Many:   800, // the stand-in is slow with more
	Sweep: func(ctx context.Context, b storetest.Backend, now time.Time) error {
		return sweep(ctx, b.(*Store), now)
	},
	PutCounter: func(t *testing.T, b storetest.Backend, r exchange.Record) {
		t.Helper()
		putDocument(t, b.(*Store), recordDocument(&r))
	},
	Faulty: func(t *testing.T, location string) (storetest.Backend, storetest.Faults) {
		t.Helper()
		uri, database, _ := strings.Cut(location, " ")
		p := mongotest.NewProxy(t, uri)
		return openAt(t, p.URI, database), storetest.Faults{
			Lose: func(command int, whole bool) { lose(p, command, whole) },
			Hold: func(command int) (<-chan struct{}, func()) { return hold(p, command) },
		}
	},
	Age: func(t *testing.T, b storetest.Backend, table store.Table, key string, by time.Duration) {
		t.Helper()
		at := time.Now().Add(-by)
		setFields(t, b.(*Store), table.Name, key, bson.D{{Key: "changed", Value: at}})
	},
	Spoil: map[string]func(t *testing.T, b storetest.Backend, table store.Table, key string){
		"edited by hand": spoil(bson.D{{Key: "value", Value: "text"}, {Key: "version", Value: "one"}, {Key: "nonce", Value: nil}}),
		"other type":     spoil(bson.D{{Key: "expire", Value: "tomorrow"}, {Key: "owner", Value: 7}, {Key: "changed", Value: "now"}}),
		"neither gone":   spoil(bson.D{{Key: "gone", Value: "yes"}}),
		"other value":    spoil(bson.D{{Key: "value.at", Value: bson.NewObjectID()}}),
		"truncated": func(t *testing.T, b storetest.Backend, table store.Table, key string) {
			t.Helper()
			_, err := b.(*Store).db.Collection(table.Name).ReplaceOne(t.Context(), byID(key), bson.D{})
			check.OK(t, err)
		},
	},
	SpoilEntry: map[string]func(t *testing.T, b storetest.Backend, number int64){
		"edited by hand": spoilTrail(bson.D{{Key: "value", Value: "text"}, {Key: "at", Value: "yesterday"}, {Key: "refs", Value: 7}}),
		"other type":     spoilTrail(bson.D{{Key: "at", Value: 7}}),
		"truncated":      spoilTrail(bson.D{{Key: "nonce", Value: nil}}),
	},
}

// sweep removes the documents that expired before now, as the TTL monitor of the server does. The
// store never removes them itself, so no clock of an instance decides which documents are deleted.
func sweep(ctx context.Context, s *Store, now time.Time) error {
	for _, table := range append(storetest.Tables, store.Table{Name: s.counters.Name()}) {
		expired := bson.D{{Key: "expire", Value: bson.D{{Key: "$lt", Value: now}}}}
		if _, err := s.db.Collection(table.Name).DeleteMany(ctx, expired); err != nil {
			return err
		}
	}
	return nil
}

func spoil(set bson.D) func(t *testing.T, b storetest.Backend, table store.Table, key string) {
	return func(t *testing.T, b storetest.Backend, table store.Table, key string) {
		t.Helper()
		setFields(t, b.(*Store), table.Name, key, set)
	}
}

func spoilTrail(set bson.D) func(t *testing.T, b storetest.Backend, number int64) {
	return func(t *testing.T, b storetest.Backend, number int64) {
		t.Helper()
		_, err := b.(*Store).trail.UpdateByID(t.Context(), number, bson.D{{Key: "$set", Value: set}}, options.UpdateOne().SetBypassDocumentValidation(true))
		check.OK(t, err)
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

func TestBackend(t *testing.T) { storetest.Run(t, target) }
