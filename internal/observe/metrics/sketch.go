package metrics

import (
	"hash/maphash"
	"strings"
	"sync"
)

// sketch finds the busiest of any number of names in constant memory. Each name belongs to a cell
// by its hash, and a cell keeps the name with a majority of its requests (Boyer and Moore's
// majority vote). If two busy names share a cell, the less busy one is missed until the next
// sketch, which uses another hash seed.
type sketch struct {
	seed  maphash.Seed
	mask  uint64 // len(cells) - 1; len(cells) is a power of two
	cells []cell
}

type cell struct {
	mu    sync.Mutex
	name  string
	votes uint32
}

// newSketch returns a sketch with cells for about n busy names.
func newSketch(n int) *sketch {
	mask := uint64(1<<10 - 1)
	for mask < 8*uint64(max(n, 0)) {
		mask = mask<<1 | 1
	}
	return &sketch{seed: maphash.MakeSeed(), mask: mask, cells: make([]cell, mask+1)}
}

// add counts one request of the name. It allocates only when the name takes over a cell.
func (s *sketch) add(name string) {
	c := &s.cells[maphash.String(s.seed, name)&s.mask]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.name == name:
		c.votes++
	case c.votes > 0:
		c.votes--
	default:
		// Cloned so the cell does not keep a request's memory alive.
		c.name, c.votes = strings.Clone(name), 1
	}
}

// winners returns the name of each cell with its votes: at most the number of requests of that
// name, and close to it if the name is busy.
func (s *sketch) winners() map[string]uint64 {
	names := make(map[string]uint64)
	for i := range s.cells {
		c := &s.cells[i]
		c.mu.Lock()
		if c.votes > 0 {
			names[c.name] = uint64(c.votes)
		}
		c.mu.Unlock()
	}
	return names
}
