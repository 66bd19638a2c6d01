package metrics

import (
	"hash/maphash"
	"strings"
	"sync"
)

// sketch finds the busiest of any number of names in constant memory: each
// name falls on one cell by its hash, and a cell keeps the name that the
// others on it could not outvote (Boyer and Moore's majority vote). A busy
// name that meets a busier one is missed, until the next sketch with another
// seed deals the cells anew.
type sketch struct {
	seed  maphash.Seed
	mask  uint64 // len(cells) - 1, a power of two less one
	cells []cell
}

type cell struct {
	mu    sync.Mutex
	name  string
	votes uint32
}

// newSketch makes a sketch that tells about n busy names apart.
func newSketch(n int) *sketch {
	mask := uint64(1<<10 - 1)
	for mask < 8*uint64(max(n, 0)) {
		mask = mask<<1 | 1
	}
	return &sketch{seed: maphash.MakeSeed(), mask: mask, cells: make([]cell, mask+1)}
}

// add counts one request of the name. It allocates only when the name takes
// over a cell.
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
		// Cloned, so that the cell does not keep a request's memory alive.
		c.name, c.votes = strings.Clone(name), 1
	}
}

// winners returns the names that hold a cell, with their votes: at most what
// each was counted, and close to it for the busy ones.
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
