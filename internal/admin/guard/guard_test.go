package guard

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzBearer: the token is the text after the scheme, and no other text is accepted.
func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer ", "bearer  a.b.c", "Basic YTpi", "Bearer a b", "Bearer\ta"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, ok := bearer(http.Header{"Authorization": {header}})
		scheme, rest, _ := strings.Cut(header, " ")
		if want := strings.EqualFold(scheme, "Bearer") && strings.Contains(header, " "); ok != want {
			t.Fatalf("a token in %q: %v", header, ok)
		}
		if ok && (strings.HasPrefix(token, " ") || strings.TrimLeft(rest, " ") != token) {
			t.Errorf("%q holds the token %q", header, token)
		}
		if _, ok := bearer(http.Header{"Authorization": {header, header}}); ok {
			t.Error("two headers are accepted")
		}
	})
}
