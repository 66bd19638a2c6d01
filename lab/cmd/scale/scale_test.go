package main

import (
	"testing"

	"oauth-server/lab/page"
)

// The page has a section for each part, so that its tables can be written.
func TestPageHasAllSections(t *testing.T) {
	for _, name := range names() {
		if _, err := page.Read("../../"+pageFile, name); err != nil {
			t.Error(err)
		}
	}
}
