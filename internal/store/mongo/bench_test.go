package mongo

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/mongo/mongotest"
)

var benchFamilies = flag.Int("families", 2000, "how many families BenchmarkRotateFamily begins with")

func benchFamily(i int, now time.Time) grants.Grant {
	return grants.Grant{
		Authorization: grants.Authorization{
			ClientID: "mobile-app", Username: "alice@example.com", Scopes: []string{"openid", "read", "write"},
			Family: secret.ID(), AuthTime: now,
		},
		Digest: secret.DigestOf(fmt.Sprint("family ", i)), Generation: 1, IssuedAt: now, ExpiresAt: now.Add(30 * 24 * time.Hour),
	}
}

// BenchmarkRotateFamily refreshes families in turn, on the server of MONGODB_TEST_URI:
//
//	go test -run '^$' -bench Rotate -benchtime 1000x ./internal/store/mongo -families 100000
//
// It reports how many commands a refresh needs, and how much the collection grows.
func BenchmarkRotateFamily(b *testing.B) {
	var commands atomic.Int64
	monitor := &event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) { commands.Add(1) }}
	s := benchStore(b, monitor)
	now := time.Now()
	r := grants.NewRepository(s)
	var filled atomic.Int64
	var fillers sync.WaitGroup
	for range 16 {
		fillers.Go(func() {
			for i := filled.Add(1) - 1; i < int64(*benchFamilies); i = filled.Add(1) - 1 {
				if err := r.CreateGrant(b.Context(), benchFamily(int(i), now)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	fillers.Wait()
	countBefore, bytesBefore, _ := benchSize(b, s)
	took := make([]time.Duration, b.N)
	commands.Store(0)
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		f, err := r.Grant(b.Context(), benchFamily(i%*benchFamilies, now).Digest)
		check.OK(b, err)
		f.Generation, f.IssuedAt, f.ExpiresAt = f.Generation+1, time.Now(), time.Now().Add(30*24*time.Hour)
		check.OK(b, r.Claim(b.Context(), f))
		took[i] = time.Since(began)
	}
	b.StopTimer()
	b.ReportMetric(float64(commands.Load())/float64(b.N), "commands/op")
	count, bytes, looked := benchSize(b, s)
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100])/1e3, fmt.Sprintf("p%d-µs", p))
	}
	b.ReportMetric(float64(count-countBefore)/float64(b.N), "documents/op")
	b.ReportMetric(float64(bytes-bytesBefore)/float64(b.N), "B-stored/op")
	b.ReportMetric(float64(bytes)/float64(looked), "B/document")
}

// benchStore opens a migrated store that reports its commands to the monitor.
func benchStore(b *testing.B, monitor *event.CommandMonitor) *Store {
	b.Helper()
	uri, database := mongotest.Database(b)
	client, err := mongo.Connect(clientOptions(uri).SetMonitor(monitor))
	check.OK(b, err)
	s := newStore(client, database)
	b.Cleanup(func() { _ = s.Close() })
	_, err = s.Migrate(b.Context())
	check.OK(b, err)
	return s
}

// benchSize returns the number of grants, the size in BSON of the first ones, which the benchmark
// refreshes, and how many it measured.
func benchSize(b *testing.B, s *Store) (count, bytes, looked int64) {
	b.Helper()
	c := s.db.Collection("grants")
	count, err := c.EstimatedDocumentCount(b.Context())
	check.OK(b, err)
	cursor, err := c.Find(b.Context(), bson.D{}, options.Find().SetLimit(10_000))
	check.OK(b, err)
	defer func() { _ = cursor.Close(b.Context()) }()
	for cursor.Next(b.Context()) {
		looked, bytes = looked+1, bytes+int64(len(cursor.Current))
	}
	check.OK(b, cursor.Err())
	return count, bytes, looked
}
