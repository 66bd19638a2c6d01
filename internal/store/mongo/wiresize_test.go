package mongo

import (
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/memstore"
)

// TestSimulatedSizes: the sizes of writes and documents that a simulated cluster assumes are the
// sizes on the wire, apart from the overhead of the commands.
func TestSimulatedSizes(t *testing.T) {
	t.Parallel()
	near := func(what string, estimate int64, wire any) {
		t.Helper()
		b, err := bson.Marshal(wire)
		check.OK(t, err)
		if d := float64(estimate) / float64(len(b)); d < 0.93 || d > 1.07 {
			t.Errorf("%s: %d bytes are taken for %d", what, estimate, len(b))
		}
	}
	ids := []exchange.CounterID{{ClientID: "client", Username: "user-123456"}, {ClientID: "a-longer-client-id", Username: "someone@example.com", Limit: "per-second"}}
	frames := []exchange.FrameCount{{Name: 1_800_000_000, Count: 3}, {Name: 1_800_000_060, Count: 1}}
	for _, id := range ids {
		for _, versioned := range []bool{true, false} {
			for n := 1; n <= len(frames); n++ {
				w := exchange.Write{
					Versioned: versioned, Version: 5, Etag: 1 << 61, NewEtag: 1 << 60, Writer: "0123456789abcdef", Seq: 1 << 60, Frame: 60_000,
					Delta: frames[:n], Expire: time.Unix(1_800_000_300, 0), Remove: exchange.Removal{Writers: []exchange.WriterSeq{{Writer: "0123456789abcdee", Seq: 1 << 59}}[:n%2]},
				}
				it := exchange.Item{ID: id, Write: &w}
				near("write", memstore.WriteBytes(&it), bson.D{{Key: "q", Value: counterFilter(id, &w)}, {Key: "u", Value: counterUpdate(&w)}, {Key: "upsert", Value: true}})
			}
		}
		for n := range len(frames) + 1 {
			r := &exchange.Record{ID: id, Frames: frames[:n], Writers: map[string]int64{}}
			writers, stored := bson.D{}, bson.D{}
			for i := range 4 * n {
				name := "0123456789abcde" + string(rune('a'+i))
				r.Writers[name] = 1 << 60
				writers = append(writers, bson.E{Key: name, Value: int64(1 << 60)})
			}
			for _, f := range r.Frames {
				stored = append(stored, bson.E{Key: strconv.FormatInt(f.Name, 10), Value: f.Count})
			}
			asked := bson.D{{Key: "0", Value: counterID(id)}}
			near("document", memstore.ReadBytes(&exchange.Item{ID: id, Read: true}, r), bson.D{
				{Key: "_id", Value: counterID(id)},
				{Key: "version", Value: int64(7)},
				{Key: "etag", Value: int64(1 << 60)},
				{Key: "frame", Value: int64(60_000)},
				{Key: "writers", Value: writers},
				{Key: "expire", Value: time.Now()},
				{Key: counts, Value: stored},
				{Key: "asked", Value: asked},
			})
		}
	}
}
