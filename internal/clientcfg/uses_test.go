package clientcfg_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// usesStore stores the recorded uses, unless it is broken.
type usesStore struct {
	broken bool
	calls  [][]clientcfg.SecretUse
}

func (s *usesStore) RecordUses(_ context.Context, uses []clientcfg.SecretUse) error {
	if s.broken {
		return errors.New("no database")
	}
	slices.SortFunc(uses, func(a, b clientcfg.SecretUse) int {
		return strings.Compare(a.ClientID, b.ClientID)
	})
	s.calls = append(s.calls, uses)
	return nil
}

func TestUses(t *testing.T) {
	store := &usesStore{}
	u := clientcfg.NewUses(store)
	flush := func() error { return u.Flush(t.Context()) }
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a, b := secret.DigestOf("a"), secret.DigestOf("b")

	// However often a secret is used, and by how many requests at once, it is written once a
	// minute.
	var together sync.WaitGroup
	for i := range 50 {
		together.Go(func() { u.Used("shop", a, noon.Add(time.Duration(i)*time.Second)) })
	}
	together.Wait()
	u.Used("shop", a, noon.Add(-time.Hour)) // a clock that was set back
	u.Used("web", b, noon.Add(90*time.Second))
	check.OK(t, flush())
	requireError(t, flush(), "") // nothing new

	store.broken = true
	u.Used("web", b, noon.Add(3*time.Minute))
	requireError(t, flush(), "no database")
	store.broken = false
	u.Used("shop", a, noon.Add(4*time.Minute))
	check.OK(t, flush())

	want := [][]clientcfg.SecretUse{
		{{ClientID: "shop", Digest: a, At: noon}, {ClientID: "web", Digest: b, At: noon.Add(time.Minute)}},
		{{ClientID: "shop", Digest: a, At: noon.Add(4 * time.Minute)}, {ClientID: "web", Digest: b, At: noon.Add(3 * time.Minute)}},
	}
	check.Equal(t, "recorded", store.calls, want)
}

// BenchmarkUsed measures a step in the path of every token request of a confidential client.
func BenchmarkUsed(b *testing.B) {
	u := clientcfg.NewUses(&usesStore{})
	digests := make([]secret.Digest, 100)
	for i := range digests {
		digests[i] = secret.DigestOf(fmt.Sprint(i))
	}
	now := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			u.Used("shop", digests[i%len(digests)], now)
		}
	})
}
