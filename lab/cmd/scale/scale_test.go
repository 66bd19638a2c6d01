package main

import (
	"testing"

	"oauth-server/lab/page"
)

// TestResultsHaveAllSections: the file has a section for each part, so that its tables can be written.
func TestResultsHaveAllSections(t *testing.T) {
	for _, name := range names() {
		if _, err := page.Read("../../"+resultsFile, name); err != nil {
			t.Error(err)
		}
	}
}
