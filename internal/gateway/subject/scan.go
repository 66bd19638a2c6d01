package subject

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// maxDepth bounds the nesting of JSON, and with it the stack. Claims are rarely deeper than four
// levels.
const maxDepth = 64

// A span is the position of a value. The zero span means no value.
type span struct{ from, to int }

// in returns the raw text of the value, or nil if there is no value.
func (p span) in(b []byte) []byte {
	if p == (span{}) {
		return nil
	}
	return b[p.from:p.to]
}

// find looks up names in b, which must be a single JSON object, and sets values to the positions of
// their values. It reports whether one of the names occurs twice, and whether b is such an object.
// It allocates nothing for other members.
func find(b []byte, names []string, values []span) (twice, ok bool) {
	ok = object(b, func(name, value span) bool {
		if i := indexOf(names, name.in(b)); i >= 0 {
			twice = twice || values[i] != span{}
			values[i] = value
		}
		return true
	})
	return twice, ok
}

// Members calls each with the raw text of the name and value of every member of b, until each
// returns false. It reports whether the part of b that it read is a single JSON object with at most
// 64 levels of nesting.
func Members(b []byte, each func(name, value []byte) bool) bool {
	return object(b, func(name, value span) bool { return each(name.in(b), value.in(b)) })
}

// object calls each for every member of b, until each returns false. It reports whether the part of
// b that it read is a single JSON object (RFC 8259). It passes spans because slices would move the
// buffers of callers to the heap.
func object(b []byte, each func(name, value span) bool) bool {
	s := scanner{b: b}
	s.space()
	if !s.skip('{') {
		return false
	}
	s.space()
	if s.skip('}') {
		return s.ends()
	}
	for {
		name, value, ok := s.member(1)
		if !ok {
			return false
		}
		if !each(name, value) {
			return true
		}
		if s.space(); s.skip('}') {
			return s.ends()
		}
		if !s.skip(',') {
			return false
		}
		s.space()
	}
}

// indexOf returns the index of the name that equals the raw text of a string, or -1.
func indexOf(names []string, raw []byte) int {
	name, _ := text(raw)
	for i := range names {
		if string(name) == names[i] {
			return i
		}
	}
	return -1
}

// text decodes the raw text of a JSON string. It reports false if the value is not a string. Like
// encoding/json, it replaces an unpaired surrogate with U+FFFD.
func text(raw []byte) ([]byte, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	var s string
	// Escapes are rare. With the copy, only the copy escapes to the heap, not the buffer of every
	// caller.
	if json.Unmarshal(bytes.Clone(raw), &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// absent reports whether the value is missing or null.
func absent(raw []byte) bool { return raw == nil || string(raw) == "null" }

// A scanner steps over JSON and validates it.
type scanner struct {
	b  []byte
	at int
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// skip skips c. It reports whether c was there.
func (s *scanner) skip(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// ends reports whether only white space follows.
func (s *scanner) ends() bool {
	s.space()
	return s.at == len(s.b)
}

// member skips a name and its value, and returns their positions.
func (s *scanner) member(depth int) (name, value span, ok bool) {
	began := s.at
	if !s.skip('"') || !s.stringEnd() {
		return span{}, span{}, false
	}
	name = span{began, s.at}
	if s.space(); !s.skip(':') {
		return span{}, span{}, false
	}
	s.space()
	began = s.at
	ok = s.value(depth)
	return name, span{began, s.at}, ok
}

// value skips a value at the given nesting depth.
func (s *scanner) value(depth int) bool {
	if s.at == len(s.b) || depth > maxDepth {
		return false
	}
	switch c := s.b[s.at]; c {
	case '"':
		s.at++
		return s.stringEnd()
	case '{', '[':
		s.at++
		return s.content(c, depth+1)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// content skips the rest of an object or array after its opening bracket.
func (s *scanner) content(opened byte, depth int) bool {
	closes := opened + 2 // holds for both kinds in ASCII
	if s.space(); s.skip(closes) {
		return true
	}
	for {
		var ok bool
		if opened == '{' {
			_, _, ok = s.member(depth)
		} else {
			ok = s.value(depth)
		}
		if !ok {
			return false
		}
		if s.space(); s.skip(closes) {
			return true
		}
		if !s.skip(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.b[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// stringEnd skips the rest of a string after its opening quotation mark.
func (s *scanner) stringEnd() bool {
	for i := s.at + plain(s.b[s.at:]); i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := escape(s.b[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return false
}

// plain returns a number of bytes at the start of b that contain no quotation mark, backslash or
// control character. It checks eight bytes at a time, because most of an answer is long tokens.
func plain(b []byte) int {
	const each, top = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := w^each*'"', w^each*'\\'
		// If x-each sets the top bit of a byte and x does not, the byte of x was 0, or a lower byte
		// borrowed.
		if ((quote-each)&^quote|(backslash-each)&^backslash|(w-each*' ')&^w)&top != 0 {
			break
		}
	}
	return n
}

// escape returns the length of the escape sequence at the start of b, or 0 if it is invalid.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isHex(b[2]) && isHex(b[3]) && isHex(b[4]) && isHex(b[5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number skips a number.
func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

// digits skips digits. It reports whether there was at least one.
func (s *scanner) digits() bool {
	began := s.at
	for s.at < len(s.b) && isDigit(s.b[s.at]) {
		s.at++
	}
	return s.at > began
}
