// Package document reads and writes the JSON of records that are too many for encoding/json: it
// takes a fifth of the time. It writes members in the order of the calls, and leaves out members
// with a zero value. A reader refuses members that its caller does not know, because a newer
// version wrote them.
//
//	w := document.New(200)
//	w.String("clientId", f.ClientID)
//	w.Object("userStamp", func() { w.Int("n", f.UserStamp.Count) })
//	value := w.End()
//
//	r := document.Read(value)
//	for r.Next() {
//		switch string(r.Name()) {
//		case "clientId":
//			f.ClientID = r.String()
//		default:
//			r.Unknown()
//		}
//	}
//	return f, r.Err()
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Writer builds an object. Create it with [New].
type Writer struct {
	b     []byte
	comma bool // the object has a member
}

// New returns a writer for an object of about size bytes.
func New(size int) *Writer { return &Writer{b: append(make([]byte, 0, size), '{')} }

// End returns the object.
func (w *Writer) End() []byte { return append(w.b, '}') }

func (w *Writer) name(name string) {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

// String writes a text.
func (w *Writer) String(name, s string) {
	if s != "" {
		w.name(name)
		w.text(s)
	}
}

func (w *Writer) text(s string) {
	if plain(s) {
		w.b = append(append(append(w.b, '"'), s...), '"')
		return
	}
	quoted, _ := json.Marshal(s) // it never fails for a string
	w.b = append(w.b, quoted...)
}

// plain reports whether a text needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Strings writes a list of texts.
func (w *Writer) Strings(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	for i, s := range list {
		w.b = append(w.b, "[,"[min(i, 1)])
		w.text(s)
	}
	w.b = append(w.b, ']')
}

// Int writes a number.
func (w *Writer) Int(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

// Bool writes true.
func (w *Writer) Bool(name string, yes bool) {
	if yes {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

// Time writes a time in the format of RFC 3339, in UTC.
func (w *Writer) Time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.b = append(t.UTC().AppendFormat(append(w.b, '"'), time.RFC3339Nano), '"')
	}
}

// Object writes an object with the members that members writes.
func (w *Writer) Object(name string, members func()) {
	w.name(name)
	w.b, w.comma = append(w.b, '{'), false
	members()
	w.b, w.comma = append(w.b, '}'), true
}

// Reader reads an object. Its methods return the value of the member that Next has found. Create it with
// [Read].
type Reader struct {
	data  []byte
	at    int    // position in data
	name  []byte // of the member
	depth int    // nesting of the current object; 0: none
	first bool
	err   error
}

// Read returns a reader of an object, which MUST NOT change during the reading.
func Read(value []byte) *Reader {
	r := &Reader{data: value}
	r.Object()
	return r
}

// Err returns why the object could not be read.
func (r *Reader) Err() error { return r.err }

var (
	errSyntax  = errors.New("not the expected JSON")
	errUnknown = errors.New("it is unknown: a newer version wrote it")
)

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("member %q: %w", r.name, err)
	}
	r.at = len(r.data)
}

// Unknown makes the reader fail because of an unknown member.
func (r *Reader) Unknown() { r.fail(errUnknown) }

// skip skips white space, and reports whether a byte follows.
func (r *Reader) skip() bool {
	for ; r.at < len(r.data); r.at++ {
		if c := r.data[r.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return true
		}
	}
	return false
}

// take skips the byte c and reports true if it is the next one.
func (r *Reader) take(c byte) bool {
	if !r.skip() || r.data[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *Reader) want(c byte) {
	if !r.take(c) {
		r.fail(errSyntax)
	}
}

// Next moves to the next member, and returns false after the last one of the object.
func (r *Reader) Next() bool {
	if r.take('}') {
		if r.depth--; r.depth == 0 && r.skip() {
			r.fail(errSyntax)
		}
		r.first = false
		return false
	}
	if !r.first {
		r.want(',')
	}
	r.first = false
	r.name = r.text()
	r.want(':')
	return r.err == nil
}

// Name returns the name of the member. It is valid until the data changes.
func (r *Reader) Name() []byte { return r.name }

// Object begins to read an object. Next then returns its members.
func (r *Reader) Object() {
	r.want('{')
	r.depth++
	r.first = true
}

// String returns a text.
func (r *Reader) String() string { return string(r.text()) }

// Text returns a text. It is valid until the data changes.
func (r *Reader) Text() []byte { return r.text() }

func (r *Reader) text() []byte {
	r.want('"')
	begin, ascii := r.at, true
	for i := begin; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.at = i + 1
			if s := r.data[begin:i]; ascii {
				return s
			}
			return r.unquote(r.data[begin-1 : r.at])
		case c == '\\':
			ascii = false
			i++
		case c < ' ' || c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.fail(errSyntax)
	return nil
}

func (r *Reader) unquote(quoted []byte) []byte {
	var s string
	if !utf8.Valid(quoted) || json.Unmarshal(quoted, &s) != nil {
		r.fail(errSyntax)
	}
	return []byte(s)
}

// Strings returns a list of texts.
func (r *Reader) Strings() []string {
	r.want('[')
	if r.take(']') {
		return nil
	}
	var few [8]string // on the stack, so that the list is allocated once, in its final size
	list := few[:0]
	for more := true; more && r.err == nil; more = r.take(',') {
		list = append(list, r.String())
	}
	r.want(']')
	return slices.Clone(list)
}

// Int returns a number.
func (r *Reader) Int() int64 {
	r.skip()
	begin := r.at
	for r.at < len(r.data) && (r.data[r.at] == '-' || '0' <= r.data[r.at] && r.data[r.at] <= '9') {
		r.at++
	}
	digits := r.data[begin:r.at]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n != 0 && bytes.TrimPrefix(digits, []byte("-"))[0] == '0' || n == 0 && len(digits) > 1 {
		r.fail(errSyntax)
		return 0
	}
	return n
}

// Bool returns a truth value.
func (r *Reader) Bool() bool {
	r.skip()
	for _, word := range [...]string{"true", "false"} {
		if bytes.HasPrefix(r.data[r.at:], []byte(word)) {
			r.at += len(word)
			return word == "true"
		}
	}
	r.fail(errSyntax)
	return false
}

// Time returns a time in the format of RFC 3339.
func (r *Reader) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.String())
	if err != nil {
		r.fail(err)
	}
	return t
}
