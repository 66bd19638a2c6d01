package embedded

import (
	"path/filepath"
	"testing"

	"oauth-server/internal/store/storetest"
)

// BenchmarkPolicies measures changes of policies by their number.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		s, err := Open(filepath.Join(b.TempDir(), "policies.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		storetest.BenchmarkPolicies(b, s, n)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
