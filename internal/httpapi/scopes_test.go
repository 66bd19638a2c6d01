package httpapi_test

import (
	"net/http"
	"testing"

	"oauth-server/internal/httpapi"
)

func TestScopesInWords(t *testing.T) {
	tests := map[string]struct{ scope, text string }{
		"none":           {"", "<li>Know who you are (your user name)</li>"},
		"object, action": {"orders:read", "<li>Read orders<br>"},
		"action, object": {"write.shop.orders", "<li>Change shop orders<br>"},
		"action alone":   {"read", "<li>Read your data<br>"},
		"other":          {"profile", "<li>Use “profile”</li>"},
		"punctuation":    {"::", "<li>Use “::”</li>"},
		"configured":     {"pay", "<li>Spend your money<br>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := newServer(t, f, func(o *httpapi.Options) { o.ScopeTexts = map[string]string{"pay": "Spend your money"} })
			v := authorization()
			v.Set("scope", tt.scope)
			res := get(t, s, "/authorize?"+v.Encode(), f.signedIn("alice"))
			wantStatus(t, res, http.StatusOK)
			holds(t, res.Body, tt.text)
		})
	}
}
