package clientcfg_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// busyStore announces a change of another client each time something is read, as during an import.
type busyStore struct {
	*fakeStore
	changes  bool // each time the changes are read
	summing  bool // each time the sum was read
	failSums bool
	n        int
}

func (b *busyStore) ClientChanges(ctx context.Context, since clientcfg.Mark, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	if b.changes {
		b.change()
	}
	return b.fakeStore.ClientChanges(ctx, since, each)
}

func (b *busyStore) ClientsSum(ctx context.Context) (clientcfg.Sum, error) {
	sum, err := b.fakeStore.ClientsSum(ctx)
	if b.summing {
		b.change()
	}
	if b.failSums {
		err = errors.New("down")
	}
	return sum, err
}

func (b *busyStore) change() {
	b.n++
	c := named("a")
	c.Name = strconv.Itoa(b.n)
	b.put(false, c, b.clients["b"])
}

// TestBusySourceFindsSilentChanges: what an earlier release changes is found within ten minutes, also
// while other clients change all the time, and what changes all the time is not read whole each time.
func TestBusySourceFindsSilentChanges(t *testing.T) {
	for _, test := range []struct {
		name             string
		changes, summing bool
		idle             int // reads of all clients in an hour in which nothing changes silently, at most
	}{
		{"between polls", true, false, 1},
		{"during each comparison", true, true, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &busyStore{fakeStore: storeOf(named("a"), named("b"))}
				source, err := clientcfg.NewSource(t.Context(), store, nil)
				requireError(t, err, "")
				store.changes, store.summing = test.changes, test.summing
				poll := func(d time.Duration, until func() bool) {
					for end := time.Now().Add(d); time.Now().Before(end) && !until(); {
						time.Sleep(2 * time.Second) //nolint:forbidigo // the time of the bubble
						requireError(t, source.Refresh(t.Context()), "")
					}
				}
				poll(time.Hour, func() bool { return false })
				if store.reads > test.idle {
					t.Errorf("%d reads of all clients in an hour, want %d at most", store.reads, test.idle)
				}
				if store.sums > 100 {
					t.Errorf("%d reads of the sum in an hour", store.sums)
				}
				for range 20 {
					revoked := named("b")
					revoked.Stamp = secret.NewStamp()
					store.put(true, store.clients["a"], revoked)
					seen := func() bool {
						b, _ := source.Client("b")
						return b.Stamp == revoked.Stamp
					}
					if poll(10*time.Minute, seen); !seen() {
						t.Fatal("a silent revocation is not seen within ten minutes")
					}
				}
			})
		})
	}
}

// TestSourceComparesAgainAfterAnError: a comparison that failed is not put off like one that was made.
func TestSourceComparesAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &busyStore{fakeStore: storeOf(named("a"), named("b")), failSums: true}
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		requireError(t, err, "")
		for store.sums == 0 {
			time.Sleep(2 * time.Second) //nolint:forbidigo // the time of the bubble
			err = source.Refresh(t.Context())
		}
		requireError(t, err, "down")
		store.failSums = false
		store.put(true, named("a"))
		for range 20 {
			time.Sleep(2 * time.Second) //nolint:forbidigo // the time of the bubble
			requireError(t, source.Refresh(t.Context()), "")
		}
		if _, ok := source.Client("b"); ok {
			t.Error("the sum was not compared again within 40 s")
		}
	})
}
