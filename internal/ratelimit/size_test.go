package ratelimit

import (
	"testing"
	"unsafe"
)

// TestSizes guards the sizes that BenchmarkMemory and BenchmarkTakeCores depend on.
func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		what      string
		got, want uintptr
	}{
		{"hot record: a cache line", unsafe.Sizeof(hot{}), 64},
		{"cold record", unsafe.Sizeof(cold{}), 36},
		{"shard: whole cache lines", unsafe.Sizeof(shard{}) % 64, 0},
		{"what a decision touches of a shard: one", unsafe.Offsetof(shard{}.inbox), 64},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d bytes, want %d", tc.what, tc.got, tc.want)
		}
	}
}
