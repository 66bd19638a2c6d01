package events

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"oauth-server/internal/simulate/traffic"
)

// table reads lines of columns (RFC 4180). The separator is the one that gives most columns in the
// first line: a comma, a semicolon, a tab or a bar.
type table struct {
	*mapped
	separator byte
	width     int     // number of columns in the first line
	columns   [][]int // by column: its slots
	needed    int     // minimum number of columns in a line
	header    bool    // the next line is the first one
	short     *problem
	open      *problem
}

// newTable compiles the mapping for a table with that first line.
func newTable(m *Mapping, first []byte) (*table, error) {
	t := &table{
		separator: separatorOf(first), header: !byNumber(m),
		short: &problem{wholeLine, "has fewer columns than are needed"}, open: &problem{wholeLine, "has a quoted column that is not closed"},
	}
	names := t.cells(first)
	t.width = len(names)
	slots := 0
	optional := m.fields["client"] == "client" && m.fields["lifetime"] == "lifetime" // the default
	compiled, err := newMapped(m, func(field string) (int, error) {
		column, err := t.column(field, names)
		switch {
		case err != nil && optional && field != "client" && field != "time":
			column = -1
		case err != nil:
			return 0, err
		}
		slot := slots
		slots++
		if column >= 0 {
			for len(t.columns) <= column {
				t.columns = append(t.columns, nil)
			}
			t.columns[column] = append(t.columns[column], slot)
			t.needed = max(t.needed, column+1)
		}
		return slot, nil
	})
	if err != nil {
		return nil, err
	}
	t.mapped = compiled
	t.fields = &fields{scanner: newScanner(slots)}
	return t, nil
}

// newMappedCSV returns the parser of a table. head is its beginning.
func newMappedCSV(c *shared, head []byte) (parser, error) {
	in := newInput(bytes.NewReader(bytes.TrimLeft(head, "\r\n")))
	line, _, _ := bytes.Cut(in.head(), []byte{'\n'})
	in.table = &table{separator: separatorOf(line)}
	first, _, _, _ := in.next()
	t, err := newTable(c.Mapping.orDefault(CSV), bytes.TrimSpace(first))
	if err != nil {
		return nil, err
	}
	t.strings, t.clock = c.strings, c.clock
	return t, nil
}

// byNumber reports whether the mapping gives columns by number. The table then has no header.
func byNumber(m *Mapping) bool {
	for _, field := range m.fields {
		if _, err := strconv.ParseUint(field, 10, 16); err != nil {
			return false
		}
	}
	return true
}

// column returns the index of a column, given by name or by number from 1.
func (t *table) column(field string, names []string) (int, error) {
	if n, err := strconv.ParseUint(field, 10, 16); err == nil && n > 0 && !t.header {
		return int(n) - 1, nil
	}
	for i, name := range names {
		if name == strings.TrimPrefix(field, ".") || name == field {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no column %q in the first line, which has %s", field, listed(names))
}

// listed lists the names of columns. If there are many, it lists only the first.
func listed(names []string) string {
	const most = 30
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ") + more
}

// cells splits the header.
func (t *table) cells(line []byte) (out []string) {
	var buf []byte
	for rest := line; ; {
		v, end := cell(rest, t.separator)
		if end < 0 {
			return out
		}
		out = append(out, strings.TrimSpace(string(v.bytes(&buf))))
		if end == len(rest) {
			return out
		}
		rest = rest[end+1:]
	}
}

func (t *table) parse(line []byte, r *traffic.Request) *problem {
	if len(bytes.TrimSpace(line)) == 0 {
		return skip
	}
	if t.header {
		t.header = false
		return skip
	}
	clear(t.values)
	column := 0
	for rest := line; column < len(t.columns); column++ {
		v, end := cell(rest, t.separator)
		if end < 0 {
			return t.open
		}
		for _, slot := range t.columns[column] {
			t.values[slot] = v
		}
		if end == len(rest) {
			column++
			break
		}
		rest = rest[end+1:]
	}
	if column < t.needed {
		return t.short
	}
	return t.request(r)
}

// scan counts the cells that end in a line. It also reports whether the last cell is open, so that
// the next line begins inside it, and whether the quotes are valid.
func (t *table) scan(b []byte, inside bool) (cells int, open, ok bool) {
	for {
		if !inside {
			b = b[beforeQuote(b):]
			if len(b) == 0 || b[0] != '"' {
				i := bytes.IndexByte(b, t.separator)
				if i < 0 {
					return cells + 1, false, true
				}
				b = b[i+1:]
				cells++
				continue
			}
			b = b[1:]
		}
		i := bytes.IndexByte(b, '"')
		if i < 0 {
			return cells, true, true
		}
		switch b = b[i+1:]; {
		case len(b) == 0 || string(b) == "\r":
			return cells + 1, false, true
		case b[0] == t.separator:
			cells++
			inside = false
		case b[0] == '"':
			inside = true
		default:
			return cells, false, false
		}
		b = b[1:]
	}
}

// cell reads a cell and returns the position of its separator or of the end of the line, or -1 if
// the cell has no end.
func cell(b []byte, separator byte) (v value, end int) {
	if n := beforeQuote(b); n > 0 {
		if v, end = cell(b[n:], separator); end >= 0 {
			return v, n + end
		}
	}
	if len(b) == 0 || b[0] != '"' {
		if end = bytes.IndexByte(b, separator); end < 0 {
			end = len(b)
		}
		return value{plain, b[:end]}, end
	}
	kind := plain
	for end = 1; end < len(b); end++ {
		if b[end] != '"' {
			continue
		}
		if end+1 == len(b) || b[end+1] == separator {
			return value{kind, b[1:end]}, end + 1
		}
		if b[end+1] != '"' {
			return v, -1
		}
		kind = doubled
		end++
	}
	return v, -1
}

// beforeQuote returns how many spaces precede the opening quote of a cell; 0 if the cell does not
// begin with a quote.
func beforeQuote(b []byte) (n int) {
	if len(b) == 0 || b[0] != ' ' {
		return 0
	}
	if n = len(b) - len(bytes.TrimLeft(b, " ")); n < len(b) && b[n] == '"' {
		return n
	}
	return 0
}

// separators are the possible separators of columns.
const separators = ",;\t|"

// separatorOf returns the separator that gives the most columns.
func separatorOf(line []byte) byte {
	best, most := byte(','), 0
	for _, c := range []byte(separators) {
		if n := bytes.Count(line, []byte{c}); n > most {
			best, most = c, n
		}
	}
	return best
}
