package events

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// table has the columns of a log (RFC 4180). The separator is the one that gives most columns in
// the first line: a comma, a semicolon, a tab or a bar.
type table struct {
	separator byte
	width     int   // number of columns in the first line; 0: not known yet
	slots     []int // by column, up to the last one that is needed; 0: not needed
	needed    int   // minimum number of columns in a line
	header    bool  // the next line is the first one
}

// Problems of lines of a table.
var (
	errShort = &problem{wholeLine, "has fewer columns than are needed"}
	errOpen  = &problem{wholeLine, "has a quoted column that is not closed"}
)

// mapTable prepares for lines of columns. head is the beginning of the table.
func (p *parser) mapTable(mapping *Mapping, head []byte) error {
	in := newInput(bytes.NewReader(bytes.TrimLeft(head, "\r\n")))
	line, _, _ := bytes.Cut(in.head(), []byte{'\n'})
	in.table = &table{separator: separatorOf(line)}
	first, _, _, _ := in.next()
	m := mapping.orDefault(CSV)
	t := &table{separator: in.table.separator, header: !byNumber(m)}
	names := t.names(bytes.TrimSpace(first))
	t.width = len(names)
	p.table, p.decode = t, p.decodeCells
	return p.apply(m, func(field string, slot int) error {
		column, err := t.column(field, names)
		if err != nil {
			if len(mapping.fields) == 0 && field != "client" && field != "time" {
				return nil // there may be no such column
			}
			return err
		}
		for len(t.slots) <= column {
			t.slots = append(t.slots, 0)
		}
		t.slots[column] = slot
		t.needed = max(t.needed, column+1)
		return nil
	})
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

// names splits the header.
func (t *table) names(line []byte) (out []string) {
	for rest := line; ; {
		text, end := cell(rest, t.separator)
		if end < 0 {
			return out
		}
		out = append(out, strings.TrimSpace(string(text)))
		if end == len(rest) {
			return out
		}
		rest = rest[end+1:]
	}
}

// decodeCells fills in the values from a line of columns.
func (p *parser) decodeCells(line []byte) *problem {
	t := p.table
	if t.header {
		t.header = false
		return skip
	}
	p.clear()
	columns := 0
	for rest := line; columns < len(t.slots); {
		text, end := cell(rest, t.separator)
		if end < 0 {
			return errOpen
		}
		if slot := t.slots[columns]; slot > 0 {
			p.values[slot] = value{plain, text}
		}
		if columns++; end == len(rest) {
			break
		}
		rest = rest[end+1:]
	}
	if columns < t.needed {
		return errShort
	}
	return nil
}

// What cell returns instead of an end.
const (
	endless = -1 // the quotes are not closed
	broken  = -2 // text follows the closing quote
)

// recordEnd returns where the record at the beginning of b ends, which may be several lines below.
// The record is broken if it has more lines than one and another number of columns than the table.
func (t *table) recordEnd(b []byte) int {
	end := 0
	for columns := 1; columns <= t.width || t.width == 0; columns++ {
		_, n := cell(b[end:], t.separator)
		if n < 0 {
			return n
		}
		if end += n; end == len(b) || b[end] == '\n' {
			if t.width > 0 && columns != t.width {
				return broken
			}
			return end
		}
		end++
	}
	return broken
}

// cell reads a cell and returns where it ends: at a separator, a line break, or the end of b.
func cell(b []byte, separator byte) (text []byte, end int) {
	if n := beforeQuote(b); n > 0 {
		if text, end = cell(b[n:], separator); end >= 0 {
			return text, n + end
		}
		return text, end
	}
	if len(b) == 0 || b[0] != '"' {
		if end = bytes.IndexByte(b, separator); end < 0 {
			end = len(b)
		}
		if line := bytes.IndexByte(b[:end], '\n'); line >= 0 {
			end = line
		}
		return b[:end], end
	}
	doubled := false
	for end = 1; ; end++ {
		quote := bytes.IndexByte(b[end:], '"')
		if quote < 0 {
			return nil, endless
		}
		end += quote
		if after := b[end+1:]; len(after) == 0 || after[0] != '"' {
			break
		}
		doubled = true
		end++
	}
	if text = b[1:end]; doubled {
		text = bytes.ReplaceAll(text, []byte(`""`), []byte(`"`))
	}
	switch after := b[end+1:]; {
	case len(after) == 0 || after[0] == separator || after[0] == '\n':
		return text, end + 1
	case after[0] == '\r' && (len(after) == 1 || after[1] == '\n'):
		return text, end + 2
	}
	return nil, broken
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
