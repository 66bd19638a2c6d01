package sharing_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/sharing"
)

// TestFlushNow checks that an answer waits for a store that works, as long as for a read, and not
// for a store that fails.
func TestFlushNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{hangs: true}
		s, _ := instance(store)
		s.Put(time.Now(), token(1), "shop", "ada", time.Time{})
		began := time.Now()
		s.FlushNow(t.Context())
		check.Equal(t, "it took", time.Since(began), sharing.ReadTimeout)
		check.Equal(t, "stats", s.Stats(), sharing.Stats{Waiting: 1})

		store.become(false, errAway)
		check.ErrorIs(t, s.Flush(t.Context()), errAway, "flush")
		store.become(false, nil)
		s.FlushNow(t.Context())
		check.Equal(t, "stats after a failure", s.Stats(), sharing.Stats{Waiting: 1})
		check.OK(t, s.Flush(t.Context()))
		s.Put(time.Now(), token(2), "shop", "ada", time.Time{})
		s.FlushNow(t.Context())
		check.Equal(t, "stats", s.Stats(), sharing.Stats{Stored: 2})
	})
}
