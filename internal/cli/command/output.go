package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// The values of -o.
const (
	OutputText = "text"
	OutputJSON = "json"
)

// JSON writes v, indented.
func (c *Env) JSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Answer writes v for a script, or the line for a person.
func (c *Env) Answer(v any, line string) error {
	if c.Output == OutputJSON {
		return c.JSON(v)
	}
	_, err := fmt.Fprintln(c.Out, line)
	return err
}

// List writes v for a script, or the rows for a person.
func (c *Env) List(v any, rows ...[]string) error {
	if c.Output == OutputJSON {
		return c.JSON(v)
	}
	return c.Table(rows...)
}

// Table writes rows in columns; the first row may be a heading.
func (c *Env) Table(rows ...[]string) error {
	w := tabwriter.NewWriter(painter{c.Out}, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Printable(cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Printable escapes unprintable characters as in a Go string: in a table cell, they could forge
// rows or control the terminal.
func Printable(cell string) string {
	var b strings.Builder
	for _, r := range cell {
		if unicode.IsPrint(r) || strings.ContainsRune(alarmMark+noticeMark+endMark, r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Note writes a message to standard error, because standard output is for the answer.
func (c *Env) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.ErrOut, format+"\n", args...)
}

// Plural returns the noun in the form that goes with n.
func Plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// Ago formats how long ago something happened.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(d.Hours()))
}

// Number writes a count for a table.
func Number(n uint64) string { return strconv.FormatUint(n, 10) }

// Names returns the elements as strings.
func Names[S ~string](list []S) []string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = string(name)
	}
	return names
}

// OrDash joins the elements with spaces; - for an empty list.
func OrDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}
