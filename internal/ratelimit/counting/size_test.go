package counting

import (
	"testing"
	"unsafe"

	"oauth-server/internal/check"
)

// TestSizes guards the sizes that the benchmarks of decisions depend on.
func TestSizes(t *testing.T) {
	check.Equal(t, "rest of a cache line behind a shard", unsafe.Sizeof(shard{})%64, 0)
	check.Equal(t, "what is before the records", unsafe.Offsetof(shard{}.Records), 16)
}
