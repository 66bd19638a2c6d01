package main

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
	outputText = "text"
	outputJSON = "json"
)

// json writes v, indented.
func (c *cli) json(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// answer writes v for a script, or the line for a person.
func (c *cli) answer(v any, line string) error {
	if c.output == outputJSON {
		return c.json(v)
	}
	_, err := fmt.Fprintln(c.out, line)
	return err
}

// list writes v for a script, or the rows for a person.
func (c *cli) list(v any, rows ...[]string) error {
	if c.output == outputJSON {
		return c.json(v)
	}
	return c.table(rows...)
}

// table writes rows in columns; the first row may be a heading.
func (c *cli) table(rows ...[]string) error {
	w := tabwriter.NewWriter(painter{c.out}, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printable escapes unprintable characters as in a Go string: in a table cell, they could forge
// rows or control the terminal.
func printable(cell string) string {
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

// note writes a message to standard error, because standard output is for the answer.
func (c *cli) note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.errOut, format+"\n", args...)
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// ago formats how long ago something happened.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(d.Hours()))
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}
