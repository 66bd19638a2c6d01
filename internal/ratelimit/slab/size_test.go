package slab

import (
	"testing"
	"unsafe"

	"oauth-server/internal/check"
)

// TestSizes guards the sizes that the benchmarks of decisions depend on.
func TestSizes(t *testing.T) {
	check.Equal(t, "hot record, a cache line", unsafe.Sizeof(Hot{}), 64)
	check.Equal(t, "cold record", unsafe.Sizeof(Cold{}), 36)
	check.Equal(t, "part of the records that a decision reads, with the 16 bytes before them a cache line", unsafe.Offsetof(Records{}.keys), 48)
}
