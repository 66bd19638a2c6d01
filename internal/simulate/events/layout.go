package events

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// layout has the places of a format's fields. Each field has a slot. Several places may fill it.
type layout struct {
	root  *node
	slots int
}

func newLayout() *layout { return &layout{root: newNode()} }

// field assigns a slot to a field with the given paths. If values exist at several paths, the last
// path counts: log collectors add members of their own around the event.
func (l *layout) field(paths ...string) (slot int) {
	slot = l.slots
	l.slots++
	for rank, path := range paths {
		n, err := l.add(slot, path)
		if err != nil {
			panic(err) // the paths of the formats are constants
		}
		n.rank = rank
	}
	return slot
}

// add lets the value at a path of a JSON document fill the slot, such as .details.grant_type,
// .target[0].id, .target[type=User].id or ."log.logger".
func (l *layout) add(slot int, path string) (*node, error) {
	n, rest := l.root, path
	for rest != "" {
		var err error
		if rest[0] == '[' {
			n, rest, err = intoElement(n, rest)
		} else {
			n, rest, err = intoMember(n, rest)
		}
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
	}
	if n == l.root {
		return nil, fmt.Errorf("path %q: is empty", path)
	}
	n.slot = slot
	return n, nil
}

// intoMember follows a path to a member, in quotes or not.
func intoMember(n *node, path string) (*node, string, error) {
	path = strings.TrimPrefix(path, ".")
	if inner, isQuoted := strings.CutPrefix(path, `"`); isQuoted {
		name, rest, closed := strings.Cut(inner, `"`)
		if !closed || name == "" {
			return nil, "", fmt.Errorf("a name in quotes is not closed")
		}
		return n.child(name), rest, nil
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if end == 0 {
		return nil, "", fmt.Errorf("a name is empty")
	}
	return n.child(path[:end]), path[end:], nil
}

// intoElement follows a path to an element: [0], or [name=text].
func intoElement(n *node, path string) (*node, string, error) {
	inner, rest, closed := strings.Cut(path[1:], "]")
	if !closed {
		return nil, "", fmt.Errorf("a bracket is not closed")
	}
	if key, is, byMember := strings.Cut(inner, "="); byMember {
		return n.element(-1, key, is), rest, nil
	}
	index, err := strconv.ParseUint(inner, 10, 16)
	if err != nil {
		return nil, "", fmt.Errorf("[%s] is neither a number nor name=text", inner)
	}
	return n.element(int(index), "", ""), rest, nil
}

// fields has the values of a line, by slot, and the scanner that reads them.
type fields struct {
	*scanner
	*layout
	strings *stringTable
	clock   *clock
	buf     []byte
}

func newFields(l *layout, c *shared) *fields {
	return &fields{scanner: newScanner(l.slots), layout: l, strings: c.strings, clock: c.clock}
}

// pick fills the slots from a line that is a JSON object. A blank line has no fields.
func (f *fields) pick(line []byte) *problem {
	if len(bytes.TrimSpace(line)) == 0 {
		return skip
	}
	return f.line(line, f.root)
}

// text returns the text of a field. It is valid until the next call.
func (f *fields) text(slot int) []byte { return f.values[slot].bytes(&f.buf) }

// string returns the text of a field; "" if the field is absent.
func (f *fields) string(slot int) string { return f.strings.of(f.text(slot)) }

// first returns the text of the first field that is present.
func (f *fields) first(slots ...int) string {
	for _, slot := range slots {
		if f.values[slot].present() {
			return f.string(slot)
		}
	}
	return ""
}

func (f *fields) has(slot int) bool             { return f.values[slot].present() }
func (f *fields) is(slot int, text string) bool { return f.values[slot].is(text) }

// time reads the time of the line from the first field that is present, or else uses the time at
// which the line was collected.
func (f *fields) time(r *traffic.Request, missing, invalid *problem, slots ...int) *problem {
	for _, slot := range slots {
		if !f.has(slot) {
			continue
		}
		at, ok := f.clock.time(f.text(slot))
		switch {
		case f.clock.missing:
			return &problem{invalid.field, "does not exist in the zone, which puts its clock forward then: see --zone"}
		case !ok:
			return invalid
		}
		r.At = at
		return nil
	}
	if at, ok := f.clock.time(f.clock.stamp); ok {
		r.At = at
		return nil
	}
	return missing
}

// seconds reads a number of seconds; 0 if the field is absent.
func (f *fields) seconds(slot int) time.Duration {
	n, err := strconv.ParseFloat(string(f.text(slot)), 64)
	if err != nil || !(n >= 0 && n <= 1e9) { // it may be NaN
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// pairs fills the slots from key=value pairs in the format of slog: separated by spaces, in quotes
// where necessary.
func (f *fields) pairs(b []byte) bool {
	for b = bytes.TrimLeft(b, " "); len(b) > 0; b = bytes.TrimLeft(b, " ") {
		eq := bytes.IndexByte(b, '=')
		if eq <= 0 {
			return false
		}
		n := f.root.find(b[:eq])
		b = b[eq+1:]
		v, end := pair(b)
		if end < 0 {
			return false
		}
		if n != nil && n.slot >= 0 {
			f.values[n.slot] = v
		}
		b = b[end:]
	}
	return true
}

// pair reads a value and returns where it ends, or -1 if it has no end.
func pair(b []byte) (v value, end int) {
	if len(b) == 0 || b[0] != '"' {
		if end = bytes.IndexByte(b, ' '); end < 0 {
			end = len(b)
		}
		return value{plain, b[:end]}, end
	}
	end, esc := text(b, 1)
	switch {
	case end < 0:
		return v, -1
	case esc:
		return value{quoted, b[1:end]}, end + 1
	}
	return value{plain, b[1:end]}, end + 1
}
