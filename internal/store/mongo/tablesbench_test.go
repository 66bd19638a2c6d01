package mongo

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"oauth-server/internal/store"
)

// family is the value of a typical family, as its repository writes it.
const family = `{"client":"mobile-app","scopes":["openid","read","write"],"family":"Zl0kqg3v8cJt1y2mPp6hTQ","authTime":1700000000000,` +
	`"generation":%d,"issued":1700000000000,"expires":1702592000000,"clientStamp":"AAECAwQFBgcICQoLDA0ODw"}`

func familyRecord(i, generation int) store.Record {
	return store.Record{
		Key: fmt.Sprintf("fam-%020d", i), Value: fmt.Appendf(nil, family, generation),
		Owner: "alice@example.com", Expires: time.Now().Add(30 * 24 * time.Hour),
	}
}

// BenchmarkRefresh reads and writes records of the size of a family in turn, as a refresh does: compare it with
// BenchmarkRotateFamily.
func BenchmarkRefresh(b *testing.B) {
	var commands atomic.Int64
	s := benchStore(b, &event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) { commands.Add(1) }})
	records := make([]store.Record, *benchFamilies)
	for i := range records {
		records[i] = familyRecord(i, 1)
		records[i].Version = 1
	}
	if err := s.PutAll(b.Context(), things, records); err != nil {
		b.Fatal(err)
	}
	took := make([]time.Duration, b.N)
	commands.Store(0)
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		var seen store.Seen
		err := s.Get(b.Context(), things, func(r store.Record) error { seen = r.Seen(); return r.Err }, records[i%len(records)].Key)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Put(b.Context(), things, familyRecord(i%len(records), i), seen); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	b.StopTimer()
	b.ReportMetric(float64(commands.Load())/float64(b.N), "commands/op")
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100])/1e3, fmt.Sprintf("p%d-µs", p))
	}
}

func BenchmarkDocumentOf(b *testing.B) {
	object := fmt.Appendf(nil, family, 7)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := documentOf(object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadRecord(b *testing.B) {
	value, err := documentOf(fmt.Appendf(nil, family, 7))
	if err != nil {
		b.Fatal(err)
	}
	doc := benchDocument(b, value)
	var rd reader
	b.ReportAllocs()
	for b.Loop() {
		if !rd.read(doc) || rd.record.Err != nil {
			b.Fatal(rd.record.Err)
		}
	}
}

func benchDocument(b *testing.B, value bson.Raw) bson.Raw {
	b.Helper()
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: "fam-00000000000000000001"},
		{Key: "value", Value: value},
		{Key: "version", Value: int64(3)},
		{Key: "nonce", Value: int64(1) << 60},
		{Key: "owner", Value: "alice@example.com"},
		{Key: "expire", Value: time.Now()},
		{Key: "changed", Value: time.Now()},
	})
	if err != nil {
		b.Fatal(err)
	}
	return doc
}
