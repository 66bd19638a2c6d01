package subject

import (
	"fmt"
	"reflect"
	"unsafe"
)

// EntrySize is the size of a record. The doc comment of Memory depends on it.
const EntrySize = unsafe.Sizeof(entry{})

// Records are the record types that may exist in millions.
var Records = []reflect.Type{reflect.TypeFor[entry](), reflect.TypeFor[block]()}

// MaxDepth is the maximum nesting of JSON.
const MaxDepth = maxDepth

// Check returns an inconsistency in a memory, or nil.
func (m *Memory) Check() error {
	for i := range m.shards {
		if err := m.shards[i].check(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}

func (s *shard) check() error {
	if s.length > s.limit || s.entries.used > s.limit {
		return fmt.Errorf("%d entries, %d of them ever used, limit %d", s.length, s.entries.used, s.limit)
	}
	listed, blocks, before := uint32(0), uint32(0), uint32(0)
	for num := s.oldest; num != 0; num = s.entries.at(num).newer {
		e := s.entries.at(num)
		if e.older != before || e.size == 0 || s.find(&e.digest) != num {
			return fmt.Errorf("entry %d is not found, or not as it is listed", num)
		}
		for b := e.rest; b != 0; b = s.blocks.at(b).next {
			blocks++
		}
		before = num
		listed++
	}
	if before != s.newest || listed != s.length {
		return fmt.Errorf("%d entries are listed, of %d", listed, s.length)
	}
	for num := s.free; num != 0; num = s.entries.at(num).chain {
		listed++
	}
	for num := s.spare; num != 0; num = s.blocks.at(num).next {
		blocks++
	}
	if listed != s.entries.used || blocks != s.blocks.used {
		return fmt.Errorf("lost: %d entries, %d blocks", s.entries.used-listed, s.blocks.used-blocks)
	}
	return nil
}
