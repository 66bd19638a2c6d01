// Command report makes one Markdown table of the output of the benchmarks, and writes it into a page.
//
//	report RESULTS PAGE
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want RESULTS PAGE")
	}
	text, err := os.ReadFile(args[0]) //nolint:gosec // G703: the file that the caller names
	if err != nil {
		return err
	}
	page, err := os.ReadFile(args[1]) //nolint:gosec // G703: see above
	if err != nil {
		return err
	}
	table, err := parse(string(text)).table(rows())
	if err != nil {
		return fmt.Errorf("%s is not complete: %w", args[0], err)
	}
	next, err := withSection(string(page), table)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	return os.WriteFile(args[1], []byte(next), 0o644) //nolint:gosec // G306: a page of the project
}

// withSection replaces what is between the markers of a page.
func withSection(page, text string) (string, error) {
	const first, last = "<!-- begin results -->", "<!-- end results -->"
	head, rest, began := strings.Cut(page, first)
	_, tail, ended := strings.Cut(rest, last)
	if !began || !ended {
		return "", fmt.Errorf("there is no section between %q and %q", first, last)
	}
	return head + first + "\n\n" + strings.Trim(text, "\n") + "\n\n" + last + tail, nil
}
