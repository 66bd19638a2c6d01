// Package page writes the sections of pages in docs/ that benchmarks make. A section is what is between two markers:
//
//	<!-- begin NAME -->
//	<!-- end NAME -->
package page

import (
	"fmt"
	"os"
	"strings"
)

// With returns a page with another text in a section.
func With(page, section, text string) (string, error) {
	first, last := "<!-- begin "+section+" -->", "<!-- end "+section+" -->"
	head, rest, began := strings.Cut(page, first)
	_, tail, ended := strings.Cut(rest, last)
	if !began || !ended {
		return "", fmt.Errorf("there is no section between %q and %q", first, last)
	}
	return head + first + "\n\n" + strings.Trim(text, "\n") + "\n\n" + last + tail, nil
}

// Write replaces a section of a page.
func Write(file, section, text string) error {
	page, err := os.ReadFile(file) //nolint:gosec // G304: the file that the caller names
	if err != nil {
		return err
	}
	next, err := With(string(page), section, text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(next), 0o644) //nolint:gosec // G306: a page of the project
}
