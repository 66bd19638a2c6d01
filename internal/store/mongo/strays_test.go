package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// strays returns documents that an editor may have put into the trail. The _ids of entries are
// whole numbers. The strays sort before and after all numbers.
func strays() []bson.D {
	note := bson.E{Key: "note", Value: "by hand"}
	at, old := bson.E{Key: "at", Value: time.Now()}, bson.E{Key: "at", Value: time.Unix(0, 0)}
	return []bson.D{
		{note}, // with an ObjectId
		{{Key: "_id", Value: bson.NewObjectID()}, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: nil}, old, {Key: "open", Value: true}},
		{{Key: "_id", Value: "3"}, note, old},
		{{Key: "_id", Value: bson.D{{Key: "n", Value: 3}}}, note},
		{{Key: "_id", Value: true}, at},
		{{Key: "_id", Value: time.Now()}, at},
		{{Key: "_id", Value: -1}, note, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: 1e18 * 100}, note, at},
	}
}

func putStrays(t *testing.T, s *Store, collection string) {
	t.Helper()
	for _, doc := range strays() {
		_, err := s.db.Collection(collection).InsertOne(t.Context(), doc, options.InsertOne().SetBypassDocumentValidation(true))
		check.OK(t, err)
	}
}

// TestStraysInTheTrail: strays cause no refused change and no unreadable entry, and are not part of
// the history.
func TestStraysInTheTrail(t *testing.T) {
	for _, before := range []int{0, 5} { // existing entries
		_, s, _ := throughProxy(t)
		f, err := store.NewFollower(t.Context(), s)
		check.OK(t, err)
		appendTo := func(n int) {
			for number := int64(0); number < int64(n); {
				mark, err := f.Append(t.Context(), func(int64) (store.Entry, []store.Write, error) {
					return store.Entry{Value: []byte("{}")}, nil, nil
				})
				check.OK(t, err)
				number = mark.Number
			}
		}
		appendTo(before)
		putStrays(t, s, "trail")
		check.OK(t, f.Refresh(t.Context()))
		appendTo(6)
		entries, _, err := s.Trail(t.Context(), store.Mark{}, 100)
		check.OK(t, err)
		check.Equal(t, "entries", len(entries), 6)
		shown := 0
		check.OK(t, s.History(t.Context(), 0, func(e store.Entry) error {
			shown++
			return e.Err
		}))
		check.Equal(t, "entries of the history", shown, 6)
		check.OK(t, s.Trim(t.Context(), 5))
		appendTo(7)
	}
}
