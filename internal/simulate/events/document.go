package events

import (
	"bytes"
	"io"
)

// document splits a stream of JSON values that are not on one line each: the responses of APIs,
// which are arrays, or objects with an array in one member, compact or indented; and objects
// without separators.
type document struct {
	on     bool
	in     []byte // the objects and arrays around the next value, as { and [, and v for an array of texts
	member string // name of the member with the array, if any
}

// arrayNames are the members in which APIs return arrays, and the first byte of their elements: of
// Microsoft Graph, Azure Monitor, this server, CloudWatch and Loki.
var arrayNames = map[string]byte{"value": '{', "records": '{', "entries": '{', "logEvents": '{', "events": '{', "streams": '{', "values": '['}

// nestedNames are members within a member: of Loki, the event hooks of Okta, and Elasticsearch.
var nestedNames = map[string]map[string]byte{"data": {"result": '{', "events": '{'}, "hits": {"hits": '{'}}

// lokiNames are members of the elements in an array of Loki.
var lokiNames = map[string]byte{"values": '['}

// texts stands for an array of Loki, with arrays of texts as its elements.
const texts = 'v'

// deepestDocument bounds how many objects and arrays around a value are tracked.
const deepestDocument = 64

// innermost returns the innermost bracket around the next value: { or [, or 0 at the top level.
func (d *document) innermost() byte {
	if len(d.in) == 0 {
		return 0
	}
	return d.in[len(d.in)-1]
}

func (d *document) enter(c byte) {
	if len(d.in) < deepestDocument {
		d.in = append(d.in, c)
	}
}

// isDocument reports whether to split the stream, which begins with head, into values instead of
// lines.
func isDocument(head []byte) bool {
	i := space(head, 0)
	if i == len(head) {
		return false
	}
	if head[i] == '[' {
		next := space(head, i+1)
		return next == len(head) || head[next] == '{' || head[next] == ']'
	}
	if head[i] != '{' {
		return false
	}
	if at, _, _ := arrayIn(head[i:], 0, arrayNames, nestedNames); at > 0 {
		return true
	}
	first, rest, more := bytes.Cut(head[i:], []byte{'\n'})
	end := passOver(first, 0)
	if end > 0 {
		next := space(first, end)
		return next < len(first) && first[next] == '{'
	}
	// The first line of a log may be cut off. The lines after it then begin an object.
	next := space(rest, 0)
	return more && (next == len(rest) || rest[next] != '{')
}

// arrayIn returns where the array begins if the object at i has one in a member with such a name.
// It returns 0 if there is no array, or if it is not in b yet. It also returns the depth in
// objects, and the names of the members, separated by points.
func arrayIn(b []byte, i int, names map[string]byte, nested map[string]map[string]byte) (at, depth int, member string) {
	for i = space(b, i+1); i < len(b) && b[i] == '"'; {
		end, _ := text(b, i+1)
		if end < 0 {
			return 0, 0, ""
		}
		key := b[i+1 : end]
		if i = space(b, end+1); i == len(b) || b[i] != ':' {
			return 0, 0, ""
		}
		if i = space(b, i+1); i == len(b) {
			return 0, 0, ""
		}
		if first := names[string(key)]; b[i] == '[' && first != 0 {
			if next := space(b, i+1); next < len(b) && b[next] == first {
				return i, 1, string(key)
			}
		}
		if inner := nested[string(key)]; b[i] == '{' && inner != nil {
			if at, depth, member = arrayIn(b, i, inner, nil); at > 0 {
				return at, depth + 1, string(key) + "." + member
			}
		}
		if i = endOf(b, i); i < 0 {
			return 0, 0, ""
		}
		if i = space(b, i); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return 0, 0, ""
}

// endOf returns where the value at i ends, or -1 if the end is not in b.
func endOf(b []byte, i int) int {
	switch b[i] {
	case '{', '[':
		return passOver(b, i)
	case '"':
		end, _ := text(b, i+1)
		if end < 0 {
			return -1
		}
		return end + 1
	}
	n := bytes.IndexAny(b[i:], ",}] \t\r\n")
	if n < 0 {
		return -1
	}
	return i + n
}

// nextValue returns the next object of the document, or the next array of texts.
func (in *input) nextValue() (record []byte, line uint64, p *problem, ok bool) {
	if !in.seek() {
		return in.last()
	}
	if c := in.buf[in.start]; c != '{' && c != '[' {
		return in.junk()
	}
	names, nested := arrayNames, nestedNames
	if in.doc.innermost() != 0 {
		names, nested = lokiNames, nil
	}
	for {
		b := in.buf[in.start:in.end]
		if b[0] == '{' {
			if at, depth, member := arrayIn(b, 0, names, nested); at > 0 {
				in.advance(at + 1)
				for range depth {
					in.doc.enter('{')
				}
				if in.doc.enter('['); member == "values" {
					in.doc.in[len(in.doc.in)-1] = texts
				}
				if in.doc.member == "" || member != "values" { // of an element
					in.doc.member = member
				}
				return in.nextValue()
			}
		}
		if end := passOver(b, 0); end > 0 && end <= longestLine {
			line := in.line + 1
			in.advance(end)
			return b[:end], line, nil, true
		}
		if len(b) > longestLine {
			return in.tooLong()
		}
		if !in.fill() {
			return in.cut()
		}
	}
}

// seek moves to the next value, past the separators, and reports whether there is one. It also
// stops at text that is not JSON.
func (in *input) seek() bool {
	for {
		for in.start < in.end {
			c, around := in.buf[in.start], in.doc.innermost()
			switch {
			case c == '\n':
				in.line++
			case c == ' ' || c == '\t' || c == '\r' || c == ',' || bytes.IndexByte(bom, c) >= 0:
			case c == '}' && around == '{' || c == ']' && (around == '[' || around == texts):
				in.doc.in = in.doc.in[:len(in.doc.in)-1]
			case around == '{':
				in.passMember()
				continue
			case c == '[' && around != texts:
				in.doc.enter('[')
			case c == ']':
			default:
				return true
			}
			in.start++
		}
		if !in.fill() {
			return false
		}
	}
}

// passMember skips a part of the object around an array: a name, a colon or a value.
func (in *input) passMember() {
	for {
		b := in.buf[in.start:in.end]
		if b[0] == ':' {
			in.advance(1)
			return
		}
		if end := endOf(b, 0); end > 0 {
			in.advance(end)
			return
		}
		if len(b) > longestLine || !in.fill() {
			in.advance(in.end - in.start)
			return
		}
	}
}

// advance takes n bytes and counts their lines.
func (in *input) advance(n int) {
	in.line += uint64(bytes.Count(in.buf[in.start:in.start+n], []byte{'\n'})) //nolint:gosec // no negative count
	in.start += n
}

// junk takes the rest of a line that is not JSON.
func (in *input) junk() (record []byte, line uint64, p *problem, ok bool) {
	line = in.line + 1
	_, _, _, ok = in.nextLine()
	return nil, line, errNoObject, ok
}

// tooLong takes a value that is too long, up to the next line that begins a value.
func (in *input) tooLong() (record []byte, line uint64, p *problem, ok bool) {
	line = in.line + 1
	for {
		in.passLine()
		in.line++
		if in.start == in.end && !in.fill() {
			break
		}
		if b := in.head(); space(b, 0) < len(b) && b[space(b, 0)] == '{' {
			break
		}
	}
	return nil, line, errLong, true
}

// cut takes a value that the stream cuts off.
func (in *input) cut() (record []byte, line uint64, p *problem, ok bool) {
	line = in.line + 1
	if p = problemOf(in.err); p == nil {
		p = errJSON
	} else {
		in.err = io.EOF
	}
	in.advance(in.end - in.start)
	return nil, line, p, true
}
