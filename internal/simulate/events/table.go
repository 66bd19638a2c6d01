package events

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// table has the columns of a log (RFC 4180). The separator is the one that gives most columns in
// the first line: a comma, a semicolon, a tab or a bar.
type table struct {
	separator rune
	width     int   // number of columns in the first line; 0: not known yet
	slots     []int // by column, up to the last one that is needed; 0: not needed
	header    bool  // the next line is the first one

	reader *csv.Reader // of one record after the other; nil: not made yet
	from   bytes.Reader
}

// Problems of lines of a table.
var (
	errShort = &problem{wholeLine, "has too few columns"}
	errOpen  = &problem{wholeLine, "has an unclosed quoted column"}
)

// mapTable prepares for lines of columns. head is the beginning of the table.
func (p *parser) mapTable(mapping *Mapping, head []byte) error {
	in := newInput(bytes.NewReader(bytes.TrimLeft(head, "\r\n")))
	line, _, _ := bytes.Cut(in.head(), []byte{'\n'})
	m := mapping.orDefault(CSV)
	t := &table{separator: separatorOf(line), header: !byNumber(m)}
	in.table = t
	first, _, _, _ := in.next()
	names, _ := t.cells(bytes.TrimSpace(first))
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
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
	return 0, fmt.Errorf("no column %q in the first line, which has %s", field, listed(names))
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

// decodeCells fills in the values from a line of columns.
func (p *parser) decodeCells(line []byte) *problem {
	t := p.table
	if t.header {
		t.header = false
		return skip
	}
	p.clear()
	cells, err := t.cells(line)
	switch {
	case err != nil:
		return errOpen
	case len(cells) < len(t.slots):
		return errShort
	}
	for column, slot := range t.slots {
		if slot > 0 {
			p.values[slot] = value{plain, []byte(cells[column])}
		}
	}
	return nil
}

// cells splits a record. A quote inside a cell that does not begin with one is part of its text.
func (t *table) cells(record []byte) ([]string, error) {
	if t.reader == nil {
		t.reader = t.newReader(&t.from)
	}
	t.from.Reset(record)
	cells, err := t.reader.Read()
	if err == nil {
		return cells, nil
	}
	t.reader = nil // it holds the rest of the record
	if errors.Is(err, csv.ErrBareQuote) {
		lazy := t.newReader(bytes.NewReader(record))
		lazy.LazyQuotes = true
		return lazy.Read()
	}
	return nil, err
}

func (t *table) newReader(from io.Reader) *csv.Reader {
	r := csv.NewReader(from)
	r.Comma, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = t.separator, -1, true, t.separator != '\t'
	return r
}

// recordEnd returns where the record at the beginning of b ends, or 0 if that is not in b. A quoted
// cell can end in a line below (RFC 4180 2.6). A line is alone if its quotes are stray ones: no cell
// ends that way, or the record would have another number of columns than the table.
func (t *table) recordEnd(b []byte) int {
	first, end, odd := 0, 0, false
	for line := range bytes.Lines(b) {
		if line[len(line)-1] != '\n' {
			return 0
		}
		end += len(line)
		first = cmp.Or(first, end)
		if odd = odd != (bytes.Count(line, []byte{'"'})%2 == 1); !odd {
			break
		}
	}
	switch {
	case odd:
		return 0
	case end == first:
		return end
	}
	if cells, err := t.cells(b[:end]); err != nil || t.width > 0 && len(cells) != t.width {
		return first
	}
	return end
}

// separators are the possible separators of columns.
const separators = ",;\t|"

// separatorOf returns the separator that gives the most columns.
func separatorOf(line []byte) rune {
	best, most := ',', 0
	for _, c := range separators {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}
