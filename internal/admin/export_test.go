package admin

// Exports for the tests.

// Document is the OpenAPI document.
var Document = document

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
