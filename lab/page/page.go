// Package page writes and reads the results of measurements: the tables of docs/measurements.md, in Markdown, and the complete
// tables in results/*.txt, in plain text. Both have sections, which programs write. A section is the text between two markers:
//
//	<!-- begin NAME -->
//	<!-- end NAME -->
package page

import (
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// Write replaces a section of a page.
func Write(file, section, text string) error {
	page, before, after, err := find(file, section)
	if err != nil {
		return err
	}
	next := page[:before] + "\n\n" + strings.Trim(text, "\n") + "\n\n" + page[after:]
	return os.WriteFile(file, []byte(next), 0o644) //nolint:gosec // G306: a page of the project
}

// Read returns the text of a section of a page.
func Read(file, section string) (string, error) {
	page, before, after, err := find(file, section)
	return page[before:after], err
}

// find returns a page, and where the text of a section begins and ends.
func find(file, section string) (page string, before, after int, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: a page of the project
	if err != nil {
		return "", 0, 0, err
	}
	page = string(text)
	first, last := "<!-- begin "+section+" -->", "<!-- end "+section+" -->"
	before, after = strings.Index(page, first), strings.Index(page, last)
	if before < 0 || after < before {
		return "", 0, 0, fmt.Errorf("%s: there is no section between %q and %q", file, first, last)
	}
	return page, before + len(first), after, nil
}

// Markdown returns a table in Markdown.
func Markdown(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

var english = message.NewPrinter(language.English)

// Number shows the three digits that matter, and all of a larger whole number; – if there is no value.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0)
	return english.Sprint(number.Decimal(v, number.MaxFractionDigits(min(digits, 4))))
}
