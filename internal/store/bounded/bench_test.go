package bounded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/bounded"
	"oauth-server/internal/store/embedded"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
)

// The benchmark compares writes to a data file without a lane, behind one of as many calls as a commit takes, and
// behind one whose limit follows the latency: that grows with the number of writes that share a commit, so such a limit
// makes commits smaller, and every write slower.
//
//	go test -run '^$' -bench Embedded -benchtime 2s -count 5 ./internal/store/bounded
func BenchmarkEmbedded(b *testing.B) {
	for _, writers := range []int{1, 64, 512} {
		for _, with := range []struct {
			name string
			lane *lane.Lane
		}{
			{"none", nil},
			{"fixed", lane.New(lane.Options{Max: 1024, Mode: ratelimit.Enforce})},
			{"adaptive", lane.New(lane.Options{Max: 80, Min: 20, MaxAge: time.Minute, Mode: ratelimit.Enforce})},
		} {
			b.Run(fmt.Sprintf("writers=%d/lane=%s", writers, with.name), func(b *testing.B) {
				store, err := embedded.Open(filepath.Join(b.TempDir(), "store.db"), embedded.Options{})
				check.OK(b, err)
				defer func() { check.OK(b, store.Close()) }()
				var s grants.Store = store
				if with.lane != nil {
					s = bounded.New(store, with.lane, admission.New(admission.DefaultSettings(), nil))
				}
				b.ResetTimer()
				writeCodes(b, s, writers)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

// BenchmarkMongoDB compares writes to the server of MONGODB_TEST_URI in the same way, with the default connections.
func BenchmarkMongoDB(b *testing.B) {
	uri, database := mongotest.Database(b)
	store, err := mongo.Open(b.Context(), mongo.Options{URI: uri, Database: database})
	check.OK(b, err)
	defer func() { check.OK(b, store.Close()) }()
	_, err = store.Migrate(b.Context())
	check.OK(b, err)
	for _, writers := range []int{1, 64} {
		for _, with := range []struct {
			name  string
			store grants.Store
		}{
			{"none", store},
			{"adaptive", bounded.New(store, lane.New(lane.Options{Max: 80, Min: 20, Mode: ratelimit.Enforce}), admission.New(admission.DefaultSettings(), nil))},
		} {
			b.Run(fmt.Sprintf("writers=%d/lane=%s", writers, with.name), func(b *testing.B) {
				writeCodes(b, with.store, writers)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

// writeCodes stores b.N codes.
func writeCodes(b *testing.B, s grants.Store, writers int) {
	b.Helper()
	var wg sync.WaitGroup
	now := time.Now()
	for first := range writers {
		wg.Go(func() {
			for i := first; i < b.N; i += writers {
				err := s.CreateCode(lane.NewRequest(b.Context()), grants.Code{
					Authorization: grants.Authorization{ClientID: "web", Username: "ada", Family: secret.ID(), AuthTime: now},
					Digest:        secret.DigestOf(secret.New()), IssuedAt: now, ExpiresAt: now.Add(time.Minute),
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkEnter is what a call costs that need not wait.
func BenchmarkEnter(b *testing.B) {
	for name, least := range map[string]int{"fixed": 0, "adaptive": 20} {
		b.Run(name, func(b *testing.B) {
			l := lane.New(lane.Options{Max: 80, Min: least, Mode: ratelimit.Enforce})
			ctx := lane.NewRequest(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				pass, err := l.Enter(ctx)
				if err != nil {
					b.Fatal(err)
				}
				pass.Leave(true)
			}
		})
	}
}
