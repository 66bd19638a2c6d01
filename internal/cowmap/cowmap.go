// Package cowmap has an immutable map that is cheap to change: a changed copy shares with the original
// all that did not change (copy on write). So a directory of a million entries can be read without a
// lock, while a change of one entry copies about a thousandth of it.
package cowmap

import (
	"hash/maphash"
	"iter"
	"maps"
)

// shards is into how many parts a map is divided. A change copies the table of them, 8 KiB, and each
// part that it touches.
const shards = 1 << 10

// few is up to how many entries a map is not divided: a change copies it all, and there may be many such
// maps.
const few = 64

// Map maps strings to values. It is never changed, so it may be read from everywhere at once. The zero
// Map is empty.
type Map[V any] struct {
	parts *[shards]map[string]V // nil: it is not divided
	whole *map[string]V         // of one that is not divided; nil: it is empty
	len   int
}

// seed is of this process: keys may come from outside, and must not be able to meet in one part.
var seed = maphash.MakeSeed()

func shardOf(key string) int { return int(maphash.String(seed, key) % shards) }

// Get returns the value of a key, and whether there is one.
func (m Map[V]) Get(key string) (v V, ok bool) {
	switch {
	case m.parts != nil:
		v, ok = m.parts[shardOf(key)][key]
	case m.whole != nil:
		v, ok = (*m.whole)[key]
	}
	return v, ok
}

// Len is the number of entries.
func (m Map[V]) Len() int { return m.len }

// All yields every entry, in no order.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.whole != nil {
			for key, v := range *m.whole {
				if !yield(key, v) {
					return
				}
			}
		}
		if m.parts == nil {
			return
		}
		for _, part := range m.parts {
			for key, v := range part {
				if !yield(key, v) {
					return
				}
			}
		}
	}
}

// Keys yields every key, in no order.
func (m Map[V]) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range m.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Edit begins a changed copy of the map. It costs nothing until the first change.
func (m Map[V]) Edit() *Edit[V] { return &Edit[V]{m: m} }

// Edit is a map while it is made. Only one goroutine may use it.
type Edit[V any] struct {
	m        Map[V]        // as it is now
	own      *[shards]bool // parts that no Map has; nil: a Map has even the table of them
	ownWhole bool          // no Map has m.whole
}

// Set gives a key a value.
func (e *Edit[V]) Set(key string, v V) {
	part := e.part(key, 1)
	before := len(part)
	part[key] = v
	e.m.len += len(part) - before
}

// Delete removes a key, if it is there.
func (e *Edit[V]) Delete(key string) {
	if _, ok := e.m.Get(key); ok {
		delete(e.part(key, 0), key)
		e.m.len--
	}
}

// Get returns the value of a key as it is now, and whether there is one.
func (e *Edit[V]) Get(key string) (v V, ok bool) { return e.m.Get(key) }

// Map returns what was made. Afterwards the Edit is a copy of it, which may be changed further.
func (e *Edit[V]) Map() Map[V] {
	e.own, e.ownWhole = nil, false
	return e.m
}

// part returns the part of a key, copied if a Map has it, with room for so many more entries.
func (e *Edit[V]) part(key string, more int) map[string]V {
	if e.m.parts == nil && e.m.len+more <= few {
		return e.whole()
	}
	if e.own == nil {
		parts := new([shards]map[string]V)
		if e.m.parts != nil {
			*parts = *e.m.parts
		}
		e.own = new([shards]bool)
		if e.m.whole != nil {
			for key, v := range *e.m.whole {
				i := shardOf(key)
				if e.own[i] = true; parts[i] == nil {
					parts[i] = map[string]V{}
				}
				parts[i][key] = v
			}
		}
		e.m.parts, e.m.whole = parts, nil
	}
	i := shardOf(key)
	if !e.own[i] {
		e.own[i] = true
		if e.m.parts[i] = maps.Clone(e.m.parts[i]); e.m.parts[i] == nil {
			e.m.parts[i] = map[string]V{}
		}
	}
	return e.m.parts[i]
}

// whole returns all entries of a map that is not divided, copied if a Map has them.
func (e *Edit[V]) whole() map[string]V {
	if !e.ownWhole {
		e.ownWhole = true
		copied := map[string]V{}
		if e.m.whole != nil {
			maps.Copy(copied, *e.m.whole)
		}
		e.m.whole = &copied
	}
	return *e.m.whole
}
