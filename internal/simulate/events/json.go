package events

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// node is a place in JSON documents, with wanted fields below it.
type node struct {
	slot  int // slot of the value; 0: not wanted
	rank  int // rank among the places that fill the slot: the highest one present fills it
	named []member
	elems []element
}

// member is a member of an object.
type member struct {
	name string
	node *node
}

// element selects elements of an array: the one at an index, or the objects with a certain text in
// a member. By member it also selects an object that is not in an array.
type element struct {
	index    int // -1: by member
	key, is  string
	not      bool // another text than is
	selector *node
	node     *node
}

// add lets the value at a path of a JSON document fill the slot. Paths are such as
// .details.grant_type, .target[0].id, .target[type=User].id, .actor[type!=User].id or ."log.logger".
func (n *node) add(path string, slot, rank int) error {
	at, rest, err := n, path, error(nil)
	for rest != "" && err == nil {
		if rest[0] == '[' {
			at, rest, err = at.intoElement(rest)
		} else {
			at, rest, err = at.intoMember(rest)
		}
	}
	if path == "" {
		err = errors.New("is empty")
	}
	if err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	at.slot, at.rank = slot, rank
	return nil
}

// intoMember follows a path to a member, in quotes or not. It creates a missing node.
func (n *node) intoMember(path string) (child *node, rest string, err error) {
	name := strings.TrimPrefix(path, ".")
	if inner, isQuoted := strings.CutPrefix(name, `"`); isQuoted {
		var closed bool
		if name, rest, closed = strings.Cut(inner, `"`); !closed || name == "" {
			return nil, "", errors.New("a name in quotes is not closed")
		}
	} else if end := strings.IndexAny(name, ".["); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	if name == "" {
		return nil, "", errors.New("a name is empty")
	}
	if child = n.find([]byte(name)); child == nil {
		child = &node{}
		n.named = append(n.named, member{name, child})
	}
	return child, rest, nil
}

// intoElement follows a path to an element: [0], [name=text] or [name!=text].
func (n *node) intoElement(path string) (child *node, rest string, err error) {
	inner, rest, closed := strings.Cut(path[1:], "]")
	if !closed {
		return nil, "", errors.New("a bracket is not closed")
	}
	e := element{index: -1, node: &node{}}
	var byMember bool
	if e.key, e.is, byMember = strings.Cut(inner, "="); byMember {
		e.key, e.not = strings.CutSuffix(e.key, "!")
		e.selector = &node{named: []member{{e.key, &node{slot: 1}}}}
	} else if index, err := strconv.ParseUint(inner, 10, 16); err == nil {
		e.index, e.key = int(index), ""
	} else {
		return nil, "", fmt.Errorf("[%s] is neither a number nor name=text", inner)
	}
	n.elems = append(n.elems, e)
	return e.node, rest, nil
}

// noIndex is the index of an object that is not in an array.
const noIndex = -2

// find returns the node of the member; nil if the member is not wanted.
func (n *node) find(key []byte) *node {
	for i := range n.named {
		m := &n.named[i]
		if len(m.name) == len(key) && m.name[0] == key[0] && m.name == string(key) {
			return m.node
		}
	}
	return nil
}

// scanner extracts fields from JSON objects. It checks skipped parts only as far as needed to find
// their end. If a member occurs twice it takes the last one, but null counts as an absent member.
type scanner struct {
	decoder
	values []value  // by slot; the one of slot 0 is always absent
	ranks  []int    // by slot: rank of the place of the value
	sub    *scanner // for selectors
}

func newScanner(slots int) scanner {
	return scanner{values: make([]value, slots), ranks: make([]int, slots), sub: &scanner{values: make([]value, 2), ranks: make([]int, 2)}}
}

func (s *scanner) clear() {
	clear(s.values)
	clear(s.ranks)
	s.buf = s.buf[:0]
}

// set fills the slot of a node. An empty text replaces nothing.
func (s *scanner) set(n *node, v value) {
	switch {
	case n == nil || n.slot == 0 || n.rank < s.ranks[n.slot]:
	case len(v.raw) > 0:
		s.values[n.slot], s.ranks[n.slot] = v, n.rank
	case s.values[n.slot].kind == absent:
		s.values[n.slot] = v
	}
}

// line extracts the fields of the object in a line. It skips text before the object: log shippers
// put a time there.
func (s *scanner) line(b []byte, root *node) *problem {
	s.clear()
	i := bytes.IndexByte(b, '{')
	if i < 0 {
		return errNoObject
	}
	end := s.object(b, i, root)
	if end < 0 || space(b, end) != len(b) {
		return errJSON
	}
	return nil
}

// object reads the object at i and returns where it ends, or -1 if it has no end.
func (s *scanner) object(b []byte, i int, n *node) int {
	for i++; ; {
		if i = space(b, i); i == len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
			continue
		case '"':
		default:
			return -1
		}
		end, esc := text(b, i+1)
		if end < 0 {
			return -1
		}
		key := b[i+1 : end]
		if esc {
			key = s.unescape(b[i : end+1])
		}
		if i = space(b, end+1); i == len(b) || b[i] != ':' {
			return -1
		}
		if i = s.value(b, space(b, i+1), n.find(key)); i < 0 {
			return -1
		}
	}
}

// value reads the value at i, for the node unless it is nil, and returns where it ends.
func (s *scanner) value(b []byte, i int, n *node) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		end, esc := text(b, i+1)
		if end < 0 {
			return -1
		}
		v := value{plain, b[i+1 : end]}
		if esc {
			v.raw = s.unescape(b[i : end+1])
		}
		s.set(n, v)
		return end + 1
	case c == '{' && n != nil && n.named != nil:
		return s.object(b, i, n)
	case c == '{' && n != nil && n.elems != nil:
		return s.element(b, i, noIndex, n)
	case c == '[' && n != nil && n.elems != nil:
		return s.array(b, i, n)
	case c == '{' || c == '[':
		end := passOver(b, i)
		if end > 0 {
			s.set(n, value{composite, b[i:end]})
		}
		return end
	}
	return s.literal(b, i, n)
}

// literal reads a number, true, false or null.
func (s *scanner) literal(b []byte, i int, n *node) int {
	end := i
	for end < len(b) && (b[end] >= '0' && b[end] <= '9' || b[end] >= 'a' && b[end] <= 'z' || b[end] == '-' || b[end] == '+' || b[end] == '.' || b[end] == 'E') {
		end++
	}
	switch raw := b[i:end]; {
	case string(raw) == "null":
	case string(raw) == "true" || string(raw) == "false":
		s.set(n, value{literal, raw})
	case len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return -1
	case n != nil:
		s.set(n, value{literal, integer(raw)})
	}
	return end
}

// array reads the wanted elements of the array at i, and returns where it ends.
func (s *scanner) array(b []byte, i int, n *node) int {
	i++
	for at := 0; ; {
		if i = space(b, i); i == len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i++
			continue
		}
		if i = s.element(b, i, at, n); i < 0 {
			return -1
		}
		at++
	}
}

// element reads the element at i for the nodes that select it, by its index or its member. It
// returns where the element ends.
func (s *scanner) element(b []byte, i, at int, n *node) (end int) {
	read := "" // the member with its text in sub
	for j := range n.elems {
		e := &n.elems[j]
		if e.index < 0 && b[i] == '{' && read != e.key {
			s.sub.clear()
			if read, end = e.key, s.sub.object(b, i, e.selector); end < 0 {
				return -1
			}
		}
		if e.index == at || read != "" && read == e.key && (string(s.sub.values[1].text()) == e.is) != e.not {
			end = s.value(b, i, e.node)
		}
	}
	if end == 0 {
		return s.value(b, i, nil)
	}
	return end
}

// space returns where the white space at i ends.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// text returns where the string that begins at i ends, or -1 if it has no end, and whether it has
// escapes.
func text(b []byte, i int) (end int, esc bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i, esc
		case '\\':
			esc = true
			i++ // it may be a quote
		}
	}
	return -1, false
}

// passOver returns where the object or array at i ends, or -1 if it has no end.
func passOver(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i, _ = text(b, i+1); i < 0 {
				return -1
			}
		}
	}
	return -1
}
