package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/clientcfg"
)

// FuzzQuery: the numbers, flags and reasons of a query are within bounds, or an error names the
// field.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "limit=5&flag=true&reason=ticket", "limit=0", "limit=-1", "limit=1e3", "flag=1", "limit=5&limit=6", "reason=%00", "other=1", "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		c := &call{query: query}
		if n, err := c.number("limit", 500, 50); err == nil {
			if v := query.Get("limit"); v == "" && n != 50 || v != "" && (n < 1 || n > 500) {
				t.Errorf("limit %q is %d", v, n)
			} else if again, err := strconv.ParseInt(v, 10, 64); v != "" && (err != nil || again != n) {
				t.Errorf("limit %q is %d", v, n)
			}
		}
		if on, err := c.flag("flag"); err == nil && on != (query.Get("flag") == "true") {
			t.Errorf("flag %q is %v", query.Get("flag"), on)
		}
		if reason, err := c.reason(); err == nil && (len(reason) > clientcfg.MaxNoteLength || reason != query.Get("reason")) {
			t.Errorf("reason %q", reason)
		}
		for name := range query {
			o := operation{parameters: []string{"limit", "flag", "If-Match"}}
			if known := name == "limit" || name == "flag"; o.checkQuery(c) == nil && !known {
				t.Errorf("%q is accepted", name)
			}
		}
	})
}

// FuzzClientIDInPath: every client_id can be used in a path, escaped as in a URL, and is read back
// unchanged.
func FuzzClientIDInPath(f *testing.F) {
	for _, seed := range []string{"shop", "a/b%2F:c", "..", "%", "a%20b", "?x=1", "#"} {
		f.Add(seed)
	}
	e := echo.New()
	var got string
	var failed error
	e.GET("/clients/:client_id/counters", func(ec echo.Context) error {
		got, failed = (&call{Context: ec}).clientID()
		return nil
	})
	f.Fuzz(func(t *testing.T, id string) {
		c := clientcfg.Client{ID: id, Public: true, Grants: []clientcfg.Grant{clientcfg.RefreshToken}}
		if c.Validate() != nil || id == "." || id == ".." {
			return
		}
		got, failed = "", nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/clients/"+url.PathEscape(id)+"/counters", http.NoBody)
		e.ServeHTTP(httptest.NewRecorder(), r)
		if failed != nil || got != id {
			t.Errorf("%q is read as %q: %v", id, got, failed)
		}
	})
}
