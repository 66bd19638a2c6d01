package bolt

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// FuzzDecode: a record that can be read is encoded so that it decodes to the same again, and one
// that cannot be read is reported.
//
// Attack (input): Damaged stored records. They decode within bounds, or are reported. Also
// mongo.FuzzCounterRecord, clientcfg.FuzzStoredValue.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{recordFormat})
	f.Add(encodeCounter(&exchange.Record{Writers: map[string]int64{"a": 1}, Frames: []exchange.FrameCount{{Name: 1, Count: 2}}}, time.Unix(1e9, 0)))
	f.Add(encodeCounter(&exchange.Record{Version: 2, Etag: 3, Frame: 60_000, Pruned: 4, Writers: map[string]int64{"a": 1}}, time.Time{}))
	f.Add(encodeRecord(&store.Record{Version: 2, Nonce: 3, Owner: "ada", Expires: time.Unix(1e9, 0), Value: []byte("{}")}))
	f.Add(encodeEntry(&store.Entry{Nonce: 3, At: time.Unix(1e9, 0), Refs: []store.Ref{{Table: "t", Key: "k"}}, Value: []byte("{}")}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if c, expires, err := decodeCounter(exchange.CounterID{}, value); err == nil {
			again, when, err := decodeCounter(c.ID, encodeCounter(&c, expires))
			if err != nil || !reflect.DeepEqual(again, c) || !when.Equal(expires) {
				t.Errorf("%+v is read back as %+v, %v", c, again, err)
			}
		} else if !errors.Is(err, store.ErrUnreadable) {
			t.Errorf("untyped error %v", err)
		}
		e := decodeEntry(trailKey(1), value)
		again := decodeEntry(trailKey(1), encodeEntry(&e))
		switch {
		case e.Err != nil && !errors.Is(e.Err, store.ErrUnreadable):
			t.Errorf("untyped error %v", e.Err)
		case e.Err == nil && !reflect.DeepEqual(again, e):
			t.Errorf("%+v is read back as %+v", e, again)
		}
	})
}
