package subject_test

import (
	"runtime"
	"testing"
	"time"

	"oauth-server/internal/gateway/subject"
)

// full returns a memory with a million tokens, and the growth of the heap.
func full(b *testing.B) (*subject.Memory, float64) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	memory := subject.NewMemory(0)
	for key := range uint64(subject.DefaultMaxEntries) {
		memory.Put(noon, digest(key), "app", uuid(key), time.Time{})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return memory, float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

func BenchmarkMemoryPutFull(b *testing.B) {
	memory, heap := full(b)
	name, key := uuid(1), uint64(1<<32)
	b.ReportAllocs()
	for b.Loop() {
		key++
		memory.Put(noon, digest(key), "app", name, time.Time{})
	}
	b.ReportMetric(heap/float64(memory.Len()), "heap-bytes/entry")
}

// BenchmarkMemoryParallel measures a Get and a Put, as for one request.
func BenchmarkMemoryParallel(b *testing.B) {
	memory, _ := full(b)
	name := uuid(1)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for key := uint64(0); pb.Next(); key++ {
			memory.Get(noon, digest(key), "app")
			memory.Put(noon, digest(key+1<<40), "app", name, time.Time{})
		}
	})
}
