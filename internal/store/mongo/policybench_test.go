package mongo

import (
	"testing"

	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/store/storetest"
)

// BenchmarkPolicies measures changes of policies by their number. The server is part of it.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		uri, database := mongotest.Database(b)
		s, err := Open(b.Context(), Options{URI: uri, Database: database})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		storetest.BenchmarkPolicies(b, s, n)
		_ = s.Close()
	}
}
