package adminapi

import (
	"net/url"
	"strings"
)

// Escape returns a name as a segment of a path. Dots alone are escaped too: a path is cleaned of such
// segments on its way.
func Escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
