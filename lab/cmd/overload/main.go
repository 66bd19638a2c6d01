// Command overload prints what a run of the benchmark of package overload found, and writes it into a page and a picture.
//
//	overload RESULTS [PAGE PICTURE]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"oauth-server/lab/overload"
	"oauth-server/lab/page"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 && len(args) != 3 {
		return errors.New("want RESULTS, or RESULTS PAGE PICTURE")
	}
	text, err := os.ReadFile(args[0]) //nolint:gosec // G703: the file that the caller names
	if err != nil {
		return err
	}
	var report overload.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	fmt.Print(report.Text())
	if len(args) == 1 {
		return nil
	}
	return errors.Join(page.Write(args[1], "overload", report.Text()), report.Picture(args[2]))
}
