package memstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/memstore"
)

func TestDocuments(t *testing.T) {
	var s memstore.Store
	docs := []exchange.Record{
		{
			ID: ratelimit.CounterID{ClientID: "a"}, Version: 3, Etag: 4, Frame: 60_000, Pruned: 5, Writers: map[string]int64{"w": 6},
			Frames: []ratelimit.FrameCount{{Name: 1, Count: -2}, {Name: 3, Count: 4}},
		},
		{ID: ratelimit.CounterID{ClientID: "a", Limit: "l"}, Version: 1, Writers: map[string]int64{}},
		{ID: ratelimit.CounterID{ClientID: "a", Username: "u"}, Version: 1, Writers: map[string]int64{}},
		{ID: ratelimit.CounterID{ClientID: "b"}, Version: 1, Writers: map[string]int64{}},
	}
	for i := len(docs) - 1; i >= 0; i-- {
		s.Put(docs[i], time.Now())
	}
	got := s.Documents()
	if diff := cmp.Diff(docs, got); diff != "" || s.Len() != len(docs) {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	got[0].Writers["w"], got[0].Frames[0].Count = 0, 0
	check.Equal(t, "what was returned is the store's own", s.Documents(), docs)
}
