package ratelimit

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestSizes guards what BenchmarkMemory and BenchmarkTakeCores rest on.
func TestSizes(t *testing.T) {
	require.Zero(t, unsafe.Sizeof(shard{})%64, "a shard is a whole number of cache lines")
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(176), "a key with one limit")
}
