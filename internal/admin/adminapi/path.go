package adminapi

import (
	"net/url"
	"strings"
)

// Escape escapes a name as a path segment. It also escapes names of dots only, because path
// cleaning would remove such segments.
func Escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
