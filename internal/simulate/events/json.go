package events

import "bytes"

// node is a place in JSON documents, with wanted fields below it.
type node struct {
	slot  int // slot of the value; -1: not wanted
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
// a member.
type element struct {
	index    int // -1: by member
	key, is  string
	selector *node
	node     *node
}

func newNode() *node { return &node{slot: -1} }

// child returns the node of a member. It creates a missing one.
func (n *node) child(name string) *node {
	for _, m := range n.named {
		if m.name == name {
			return m.node
		}
	}
	c := newNode()
	n.named = append(n.named, member{name, c})
	return c
}

// element returns the node of an element. It creates a missing one.
func (n *node) element(index int, key, is string) *node {
	for _, e := range n.elems {
		if e.index == index && e.key == key && e.is == is {
			return e.node
		}
	}
	e := element{index: index, key: key, is: is, node: newNode(), selector: newNode()}
	e.selector.child(key).slot = 0
	n.elems = append(n.elems, e)
	return e.node
}

// find returns the node of the member; nil if the member is not wanted.
func (n *node) find(key []byte) *node {
	for i := range n.named {
		if m := &n.named[i]; m.name == string(key) {
			return m.node
		}
	}
	return nil
}

// scanner extracts fields from JSON objects. It checks skipped parts only as far as needed to find
// their end. If a member occurs twice it takes the last one, but a null counts as an absent member.
type scanner struct {
	values []value
	ranks  []int    // by slot: rank of the place of the value
	sub    *scanner // for selectors
	buf    []byte
}

func newScanner(slots int) *scanner {
	return &scanner{values: make([]value, slots), ranks: make([]int, slots), sub: &scanner{values: make([]value, 1), ranks: make([]int, 1)}}
}

func (s *scanner) clear() {
	clear(s.values)
	clear(s.ranks)
}

// set fills the slot of a node.
func (s *scanner) set(n *node, v value) {
	if n != nil && n.slot >= 0 && n.rank >= s.ranks[n.slot] {
		s.values[n.slot], s.ranks[n.slot] = v, n.rank
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
			s.buf = unescape(s.buf[:0], key)
			key = s.buf
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
			v.kind = escaped
		}
		s.set(n, v)
		return end + 1
	case c == '{' && n != nil && n.named != nil:
		return s.object(b, i, n)
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
	k := number
	switch raw := string(b[i:end]); {
	case raw == "null":
		return end
	case raw == "true" || raw == "false":
		k = truth
	case raw == "" || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return -1
	}
	s.set(n, value{k, b[i:end]})
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
		end := s.value(b, i, nil)
		if end < 0 {
			return -1
		}
		s.element(b, i, end, at, n)
		i = end
		at++
	}
}

// element reads the element from i to end for the nodes that select it, by its index or its member.
func (s *scanner) element(b []byte, i, end, at int, n *node) {
	read := "" // the member with its text in sub
	for j := range n.elems {
		e := &n.elems[j]
		if e.index < 0 && b[i] == '{' && read != e.key {
			s.sub.clear()
			s.sub.object(b[i:end], 0, e.selector)
			read = e.key
		}
		if e.index == at || read != "" && read == e.key && s.sub.values[0].is(e.is) {
			s.value(b, i, e.node)
		}
	}
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
	for short := min(i+24, len(b)); i < short; i++ { // most are short
		switch b[i] {
		case '"':
			return i, esc
		case '\\':
			esc = true
			i++
		}
	}
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1, false
		}
		end = i + n
		slash := bytes.IndexByte(b[i:end], '\\')
		if slash < 0 {
			return end, esc
		}
		esc = true
		i += slash + 2 // after the escape, which may be an escaped quote
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
