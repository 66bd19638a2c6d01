package mongo

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// family is the value of a typical family, as its repository writes it.
const family = `{"client":"mobile-app","scopes":["openid","read","write"],"family":"Zl0kqg3v8cJt1y2mPp6hTQ","authTime":1700000000000,` +
	`"generation":%d,"issued":1700000000000,"expires":1702592000000,"clientStamp":"AAECAwQFBgcICQoLDA0ODw"}`

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
