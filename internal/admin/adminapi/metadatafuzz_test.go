package adminapi_test

import (
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
)

// FuzzNewClient: an accepted client is within bounds, and stays the same when its shown form is
// sent back.
func FuzzNewClient(f *testing.F) {
	f.Add(`{"client_id": "shop", "scope": "a b", "redirect_uris": ["https://a.example/cb"], "require_pkce": false}`)
	f.Add(`{"client_id": "app", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code"]}`)
	f.Add(`{"client_id": null, "audience": [null], "meta": {}, "client_secret_hash": "{SHA256}"}`)
	f.Add(`{"client_id": "shop", "labels": {"team": "payments", "note": "", "gone": null}}`)
	f.Fuzz(func(t *testing.T, body string) {
		v, err := strict.ParseJSON([]byte(body))
		if err != nil {
			return
		}
		c, err := adminapi.ReadNewClient(v)
		if err != nil {
			return
		}
		if len(c.Scopes) > 100 || len(c.RedirectURIs) > 100 || len(c.Audience) > 100 || len(c.Name) > 200 {
			t.Errorf("out of bounds: %+v", c)
		}
		shown := c.Metadata()
		var again clientcfg.Client
		if errs := shown.Apply(&again); len(errs) > 0 {
			t.Errorf("%s is shown as %+v: %v", body, shown, errs)
		}
		if first, second := shown, again.Metadata(); first.Scope != second.Scope || first.AuthMethod != second.AuthMethod ||
			first.RequirePKCE != second.RequirePKCE || len(first.Grants) != len(second.Grants) {
			t.Errorf("%+v becomes %+v", first, second)
		}
	})
}
