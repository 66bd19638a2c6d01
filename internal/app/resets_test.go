package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admin/resets"
	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
)

// slowStore delays each exchange until the test allows it, and logs exchanges and erasures.
type slowStore struct {
	memstore.Store
	may chan struct{}
	log []string
}

func (s *slowStore) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	<-s.may
	s.log = append(s.log, "written")
	return s.Store.Exchange(ctx, items)
}

func (s *slowStore) EraseCounters(context.Context, string, *string) error {
	s.log = append(s.log, "erased")
	return nil
}

// TestResetsEraseWhatIsOnItsWay checks that counts that were sent to the store before they were
// reset have arrived when it erases.
func TestResetsEraseWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, counters := &slowStore{may: make(chan struct{})}, counting.NewCounters(10)
		cfg := syncer.DefaultConfig()
		cfg.Clock, cfg.Log = clock.New(nil), slog.New(slog.DiscardHandler)
		s := syncer.New(counters, store, nil, cfg)
		policies, err := ratelimit.Compile(ratelimit.DefaultSettings())
		check.OK(t, err)
		shop := ratelimit.Key{ClientID: "shop"}
		counters.Take(cfg.Clock.Now(), shop, policies.For("shop"), 1)
		flushed, erased := make(chan error, 1), make(chan error, 1)
		go func() { flushed <- s.Flush(t.Context(), shop) }()
		synctest.Wait()
		check.Equal(t, "the counts were in memory", counters.Reset(shop), true)
		var e resets.Eraser = eraser{store, s}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.ErrorSays(t, e.EraseCounters(soon, "shop", nil), "running exchanges")
		go func() { erased <- e.EraseCounters(t.Context(), "shop", nil) }()
		synctest.Wait()
		close(store.may)
		check.OK(t, <-flushed)
		check.OK(t, <-erased)
		check.Equal(t, "order", store.log, []string{"written", "erased"})
	})
}
