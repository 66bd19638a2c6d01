package embedded

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"oauth-server/internal/store"
)

// FuzzDecode: what is read is written so that it reads back the same, and what cannot be read is reported.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{recordVersion})
	f.Add(encodeCounter(&counter{writers: map[string]int64{"a": 1}, frames: map[int64]int64{1: 2}}))
	f.Add(encodeCounter(&counter{version: 2, etag: 3, frame: 60_000, pruned: 4, writers: map[string]int64{"a": 1}}))
	f.Add(encodeRecord(&store.Record{Version: 2, Nonce: 3, Owner: "ada", Expires: time.Unix(1e9, 0), Value: []byte("{}")}))
	f.Add(encodeEntry(&store.Entry{Nonce: 3, At: time.Unix(1e9, 0), Refs: []store.Ref{{Table: "t", Key: "k"}}, Value: []byte("{}")}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if c, err := decodeCounter(value); err == nil {
			again, err := decodeCounter(encodeCounter(c))
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%+v is read back as %+v, %v", c, again, err)
			}
		} else if !errors.Is(err, ErrCorrupt) {
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
