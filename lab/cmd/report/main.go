// Command report makes one Markdown table of the output of the benchmarks, and writes it into a page.
//
//	report RESULTS PAGE
package main

import (
	"errors"
	"fmt"
	"os"

	"oauth-server/lab/page"
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
	table, err := parse(string(text)).table(rows())
	if err != nil {
		return fmt.Errorf("%s is not complete: %w", args[0], err)
	}
	return page.Write(args[1], "results", table)
}
