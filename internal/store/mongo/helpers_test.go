package mongo

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/mongo/mongotest"
)

// throughProxy opens a migrated store behind a proxy, and the same store directly.
func throughProxy(t *testing.T) (proxied, direct *Store, p *mongotest.Proxy) {
	t.Helper()
	uri, database, _ := strings.Cut(location(t), " ")
	p = mongotest.NewProxy(t, uri)
	return openAt(t, p.URI, database), openAt(t, uri, database), p
}

func openAt(t *testing.T, uri, database string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URI: uri, Database: database})
	check.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var hotID = exchange.CounterID{ClientID: "shop", Username: "alice"}

const aFrame = 1622211780

// aWrite returns an unversioned write that counts n.
func aWrite(writer string, seq, n int64) *exchange.Write {
	return &exchange.Write{
		NewEtag: 1 + rand.Int64N(1<<62), Writer: writer, Seq: seq, Frame: 60_000,
		Delta: []exchange.FrameCount{{Name: aFrame, Count: n}}, Expire: time.Now().Add(time.Hour),
	}
}

// onto bases the write on a document, unless versioned is false.
func onto(r *exchange.Record, w *exchange.Write, versioned bool) *exchange.Write {
	if w.Versioned = versioned; versioned && r != nil {
		w.Version, w.Etag = r.Version, r.Etag
	}
	return w
}

// again returns the same write, to be sent once more because its outcome is unknown.
func again(w *exchange.Write) *exchange.Write {
	next := *w
	next.Versioned, next.Version, next.Etag, next.NewEtag = false, 0, 0, 1+rand.Int64N(1<<62)
	return &next
}

// writeOne sends one write, with nothing to read.
func writeOne(ctx context.Context, s *Store, id exchange.CounterID, w *exchange.Write) (exchange.Result, error) {
	results, err := s.Exchange(ctx, []exchange.Item{{ID: id, Write: w}})
	if results == nil {
		return exchange.Result{}, err
	}
	return results[0], err
}

func mustApply(t *testing.T, s *Store, w *exchange.Write, want exchange.Status) {
	t.Helper()
	if r, err := writeOne(t.Context(), s, hotID, w); err != nil || r.Status != want {
		t.Fatalf("got %+v, %v, want %s", r, err, want)
	}
}

// mustNotGuess sends a write that gets no reply. Its outcome must be unknown.
func mustNotGuess(t *testing.T, s *Store, w *exchange.Write) {
	t.Helper()
	if r, err := writeOne(t.Context(), s, hotID, w); err == nil || r.Status != exchange.Unknown {
		t.Fatalf("the store guessed: %+v, %v", r, err)
	}
}

func readOne(t *testing.T, s *Store, id exchange.CounterID) *exchange.Record {
	t.Helper()
	results, err := s.Exchange(t.Context(), []exchange.Item{{ID: id, Read: true}})
	if err != nil || len(results) != 1 || !results[0].Read {
		t.Fatalf("read: %+v, %v", results, err)
	}
	return results[0].Record
}

func document(t *testing.T, s *Store) *exchange.Record {
	t.Helper()
	r := readOne(t, s, hotID)
	if r == nil {
		t.Fatal("there is no document")
	}
	return r
}

func counted(r *exchange.Record) (n int64) {
	for _, f := range r.Frames {
		n += f.Count
	}
	return n
}

// impatient returns a store with a timeout of one second, behind a proxy.
func impatient(t *testing.T) (*Store, *mongotest.Proxy) {
	t.Helper()
	uri, database := mongotest.Database(t)
	proxy := mongotest.NewProxy(t, uri)
	s := openAt(t, proxy.URI, database)
	s.timeout = time.Second
	return s, proxy
}

// fields returns one document with the fields of all.
func fields(all ...bson.D) bson.D { return slices.Concat(all...) }
