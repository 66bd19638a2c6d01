package bolt

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// farOff is when the counters of these tests expire.
var farOff = time.Date(2100, time.March, 4, 5, 6, 7, 890e6, time.UTC)

// putCounter stores a document as it is.
func putCounter(t *testing.T, s *Store, id exchange.CounterID, value []byte) {
	t.Helper()
	check.OK(t, s.change(t.Context(), counters, func(tb *table) error { return tb.put(counterKey(id), "", value) }))
}

// TestCounterRecord: decoding returns the encoded document. A truncated record does not decode.
func TestCounterRecord(t *testing.T) {
	for _, c := range []exchange.Record{
		{Version: 1, Etag: 5},
		{
			Version: 300, Etag: 1 << 61, Frame: 60_000, Pruned: 9,
			Writers: map[string]int64{"a": 1 << 41, "b7": 9}, Frames: []exchange.FrameCount{{Name: 1622211780, Count: 2}, {Name: 1622211840, Count: 130}},
		},
	} {
		value := encodeCounter(&c, farOff)
		got, expires, err := decodeCounter(c.ID, value)
		check.OK(t, err)
		check.Equal(t, "expiry", expires, farOff)
		if diff := cmp.Diff(c, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for n := range value {
			if _, _, err := decodeCounter(c.ID, value[:n]); !errors.Is(err, store.ErrUnreadable) {
				t.Errorf("cut after %d bytes it decodes: %v", n, err)
			}
		}
	}
}

// TestDamagedCounter: an unreadable record is refused and reported, and does not affect others.
func TestDamagedCounter(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	var items []exchange.Item
	for _, user := range []string{"a", "b", "c"} {
		items = append(items, exchange.Item{ID: exchange.CounterID{ClientID: "shop", Username: user}, Read: true, Write: &exchange.Write{
			NewEtag: 1, Writer: "me", Seq: 1, Frame: 1000, Delta: []exchange.FrameCount{{Name: 1, Count: 2}}, Expire: farOff,
		}})
	}
	putCounter(t, s, items[1].ID, []byte{recordFormat, 0, 1, 2, 3})
	results, err := s.Exchange(t.Context(), items)
	check.OK(t, err)
	for i, want := range []exchange.Status{exchange.Applied, exchange.Rejected, exchange.Applied} {
		if r := results[i]; r.Status != want || !r.Read || r.Record == nil || (r.Record.Problem != "") != (i == 1) {
			t.Errorf("item %d: %+v with %+v", i, r, r.Record)
		}
	}
	if r := results[1]; !errors.Is(r.Err, store.ErrUnreadable) || !strings.Contains(r.Record.Problem, "unreadable") {
		t.Errorf("the damaged one: %v, %q", r.Err, r.Record.Problem)
	}
}

// TestExchangeNotCommitted: results read in a failed transaction are not returned, because they
// include its writes.
func TestExchangeNotCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s, err := Open(path, Options{maxSize: 1 << 20})
	check.OK(t, err)
	defer func() { _ = s.Close() }()
	for n := range 200 {
		items := make([]exchange.Item, exchange.MaxBatch)
		for i := range items {
			items[i] = exchange.Item{ID: exchange.CounterID{ClientID: strings.Repeat("x", 200), Username: string(rune(0x1000*(n+1) + i))}, Read: true}
			items[i].Write = &exchange.Write{NewEtag: 1, Writer: "me", Seq: 1, Frame: 1000, Expire: farOff}
		}
		results, err := s.Exchange(t.Context(), items)
		if err == nil {
			continue
		}
		if results != nil {
			t.Errorf("the file is full (%v), and %d results were returned", err, len(results))
		}
		return
	}
	t.Error("the file was never full")
}
