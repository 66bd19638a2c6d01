package ratelimit

import (
	"hash/maphash"
	"iter"
	"maps"
)

// mapParts is the number of parts of a divided map. A change copies the table of parts, 8 KiB, and
// each part that it touches.
const mapParts = 1 << 10

// fewEntries is the maximum number of entries of an undivided map. A change copies all of it.
// There may be many such small maps.
const fewEntries = 64

// Map maps strings to values. It never changes, so it is safe for concurrent use. The zero Map is
// empty. A changed copy shares all unchanged parts with the original (copy on write): changing one of
// a million entries copies about a thousandth of them. ADR 0051 compares it with libraries.
type Map[V any] struct {
	parts []map[string]V // one, or as many as mapParts; nil: it is empty
	len   int
}

// mapSeed is random for each process: keys may come from outside, and must not be able to collide in
// one part on purpose.
var mapSeed = maphash.MakeSeed()

// index returns the part of a key.
func (m Map[V]) index(key string) int {
	if len(m.parts) == 1 {
		return 0
	}
	return int(maphash.String(mapSeed, key) % mapParts)
}

// Get returns the value of a key, and whether there is one.
func (m Map[V]) Get(key string) (v V, ok bool) {
	if m.parts == nil {
		return v, false
	}
	v, ok = m.parts[m.index(key)][key]
	return v, ok
}

// Len returns the number of entries.
func (m Map[V]) Len() int { return m.len }

// All yields every entry, in undefined order.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
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
func (m Map[V]) Edit() *MapEdit[V] { return &MapEdit[V]{m: m} }

// MapEdit is a map under construction. It is not safe for concurrent use.
type MapEdit[V any] struct {
	m   Map[V] // the current state
	own []bool // parts that no Map shares; nil: a Map shares even the table of parts
}

// Set gives a key a value.
func (e *MapEdit[V]) Set(key string, v V) {
	if e.m.len == fewEntries && len(e.m.parts) == 1 {
		e.divide()
	}
	part := e.part(key)
	before := len(part)
	part[key] = v
	e.m.len += len(part) - before
}

// Delete removes a key, if it is there.
func (e *MapEdit[V]) Delete(key string) {
	if _, ok := e.m.Get(key); ok {
		delete(e.part(key), key)
		e.m.len--
	}
}

// Get returns the current value of a key, and whether there is one.
func (e *MapEdit[V]) Get(key string) (v V, ok bool) { return e.m.Get(key) }

// Map returns the result. The MapEdit can then be changed further without affecting the result.
func (e *MapEdit[V]) Map() Map[V] {
	e.own = nil
	return e.m
}

// part returns the part of a key, copied if a Map shares it.
func (e *MapEdit[V]) part(key string) map[string]V {
	if e.own == nil {
		parts := make([]map[string]V, max(len(e.m.parts), 1))
		copy(parts, e.m.parts)
		e.m.parts, e.own = parts, make([]bool, len(parts))
	}
	i := e.m.index(key)
	if !e.own[i] {
		e.own[i] = true
		if e.m.parts[i] = maps.Clone(e.m.parts[i]); e.m.parts[i] == nil {
			e.m.parts[i] = map[string]V{}
		}
	}
	return e.m.parts[i]
}

// divide distributes the entries of the only part to as many as mapParts.
func (e *MapEdit[V]) divide() {
	whole := e.m.parts[0]
	e.m.parts, e.own = make([]map[string]V, mapParts), make([]bool, mapParts)
	for key, v := range whole {
		e.part(key)[key] = v
	}
}
