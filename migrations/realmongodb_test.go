package migrations

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/store/mongo/mongotest"
)

func realDatabase(t *testing.T, lacking string) *mongo.Database {
	t.Helper()
	mongotest.Real(t, lacking)
	db := fresh(t)
	if report, err := Up(t.Context(), db); err != nil || len(report.Lacking) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	return db
}

func TestValidatorsRealMongoDB(t *testing.T) {
	db := realDatabase(t, "validators")
	good := func() bson.D {
		return bson.D{
			{Key: "_id", Value: bson.D{{Key: "clientId", Value: "c"}, {Key: "username", Value: "u"}}},
			{Key: "version", Value: int64(1)},
			{Key: "etag", Value: int64(7)},
			{Key: "expire", Value: time.Now().Add(time.Hour)},
			{Key: "writers", Value: bson.D{{Key: "me", Value: int64(1)}}},
			{Key: "requestCounters", Value: bson.D{{Key: "1622211780", Value: int64(1)}}},
			{Key: "frame", Value: int64(60_000)},
			{Key: "pruned", Value: int64(7)},
		}
	}
	if _, err := db.Collection("ratelimits").InsertOne(t.Context(), good()); err != nil {
		t.Fatalf("a good counter: %v", err)
	}
	for name, spoil := range map[string]func(bson.D){
		"a negative count": func(d bson.D) { d[5].Value = bson.D{{Key: "1622211780", Value: int64(-1)}} },
		"a count in words": func(d bson.D) { d[5].Value = bson.D{{Key: "1622211780", Value: "one"}} },
		"no version":       func(d bson.D) { d[1].Key = "vversion" },
		"an id in words":   func(d bson.D) { d[0].Value = "c/u" },
		"no frame":         func(d bson.D) { d[6].Key = "fframe" },
		"frame 0":          func(d bson.D) { d[6].Value = int64(0) },
		"frame in words":   func(d bson.D) { d[6].Value = "60s" },
		"pruned in words":  func(d bson.D) { d[7].Value = "x" },
	} {
		doc := good()
		spoil(doc)
		if _, err := db.Collection("ratelimits").InsertOne(t.Context(), doc); !hasCode(err, 121) {
			t.Errorf("%s: got %v, want a failed validation", name, err)
		}
	}
}
