package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

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
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Contains(t, res.Body, tt.text)
		})
	}
}
