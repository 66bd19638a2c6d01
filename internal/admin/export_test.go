package admin

import (
	"regexp"
)

// Exports for the tests.

// Document is the OpenAPI document.
var Document = document

// Routes returns the scope of every route, in the spelling of the document.
func Routes(s *Server) map[string]string {
	out := map[string]string{}
	for _, r := range s.routes() {
		out[r.method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.path, "{$1}")] = r.scope
	}
	return out
}

// ShowPolicy returns a policy as operators read it.
var ShowPolicy = showPolicy

// ResourceOf returns the target of the resource found for a target.
func ResourceOf(target string) (string, bool) {
	r, ok := resourceOf(target)
	if !ok {
		return "", false
	}
	return r.target(), true
}
