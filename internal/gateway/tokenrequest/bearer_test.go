package tokenrequest_test

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/tokenrequest"
)

// TestPermissionsByBearerToken checks that a request for permissions belongs to the client of its
// token, and must not name another one.
func TestPermissionsByBearerToken(t *testing.T) {
	const grant = "urn:ietf:params:oauth:grant-type:uma-ticket"
	const permissions = "grant_type=" + grant
	token := strings.TrimPrefix(jwt(`{"sub":"u1","azp":"web"}`), "client_assertion=")
	for name, tt := range map[string]struct {
		authorization, body string
		client, grant       string
	}{
		"bearer":           {"Bearer " + token, permissions, "web", grant},
		"DPoP":             {"dpop  " + token, permissions, "web", grant},
		"the same client":  {"Bearer " + token, permissions + "&client_id=web", "web", grant},
		"opaque":           {"Bearer opaque", permissions, "", grant},
		"without azp":      {"Bearer " + strings.TrimPrefix(jwt(`{"sub":"u1"}`), "client_assertion="), permissions, "", grant},
		"Basic":            {exampleBasic, permissions, "s6BhdRkqt3", grant},
		"no Authorization": {"", permissions + "&client_id=web", "web", grant},
		"another grant":    {"Bearer " + token, "grant_type=password&client_id=shop", "shop", "password"},
	} {
		t.Run(name, func(t *testing.T) {
			h := form()
			if tt.authorization != "" {
				h.Set("Authorization", tt.authorization)
			}
			r, _, err := tokenrequest.Read(h, "", []byte(tt.body))
			check.OK(t, err)
			check.Equal(t, "request", r, tokenrequest.Request{ClientID: tt.client, Grant: tt.grant})
		})
	}
	wantRefused(t, form("Authorization", "Bearer "+token), "", permissions+"&client_id=victim", "different clients")
	bad := strings.TrimPrefix(jwt(`{"azp":7}`), "client_assertion=")
	wantRefused(t, form("Authorization", "Bearer "+bad), "", permissions, "azp")
}
