// Package cowmap is an immutable map with cheap modified copies: a copy shares all unchanged parts
// with the original (copy on write). A directory of a million entries can be read without a lock,
// and changing one entry copies about a thousandth of it.
package cowmap

import (
	"hash/maphash"
	"iter"
	"maps"
)

// shards is the number of parts of a divided map. A change copies the table of parts, 8 KiB, and
// each part that it touches.
const shards = 1 << 10

// few is the maximum number of entries of an undivided map. A change copies all of it. There may be
// many such small maps.
const few = 64

// Map maps strings to values. It never changes, so it is safe for concurrent use. The zero Map is
// empty.
type Map[V any] struct {
	parts *[shards]map[string]V // nil: it is not divided
	whole *map[string]V         // of an undivided map; nil: empty
	len   int
}

// seed is random for each process: keys may come from outside, and must not be able to collide in
// one part on purpose.
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

// Len returns the number of entries.
func (m Map[V]) Len() int { return m.len }

// All yields every entry, in undefined order.
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

// Keys yields every key, in undefined order.
func (m Map[V]) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range m.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Edit starts a modified copy of the map. It copies nothing until the first change.
func (m Map[V]) Edit() *Edit[V] { return &Edit[V]{m: m} }

// Edit is a map under construction. It is not safe for concurrent use.
type Edit[V any] struct {
	m        Map[V]        // the current state
	own      *[shards]bool // parts that no Map shares; nil: a Map shares even the table of parts
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

// Get returns the current value of a key, and whether there is one.
func (e *Edit[V]) Get(key string) (v V, ok bool) { return e.m.Get(key) }

// Map returns the result. The Edit can then be changed further without affecting the result.
func (e *Edit[V]) Map() Map[V] {
	e.own, e.ownWhole = nil, false
	return e.m
}

// part returns the part of a key, copied if a Map shares it, with room for that many more entries.
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

// whole returns all entries of an undivided map, copied if a Map shares them.
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
