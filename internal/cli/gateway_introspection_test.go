package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// introspectedGateway is before a server of this program, whose tokens do not have the claim that names the user: only its
// introspection endpoint has it.
type introspectedGateway struct {
	upstream, gateway operated
	shop              credentials
	secretFile        string
}

func newIntrospectedGateway(t *testing.T) *introspectedGateway {
	t.Helper()
	data, x := storeFile(t), &introspectedGateway{secretFile: filepath.Join(t.TempDir(), "secret")}
	var asks credentials
	runJSON(t, &x.shop, "", "client", "create", "shop", "--grant", "password", "--grant", "refresh_token", "--data", data)
	runJSON(t, &asks, "", "client", "create", "gateway", "--resource-server", "--data", data)
	addUsers(t, []string{"--data", data}, "ada")
	x.upstream = serving(t, "serve", "--data", data, "--rate-limit-mode", "off")
	check.OK(t, os.WriteFile(x.secretFile, []byte(asks.ClientSecret+"\n"), 0o600))
	return x
}

// start runs the gateway, which admits two requests of each user.
func (x *introspectedGateway) start(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+x.upstream.clients+`
  token_path: [ /token ]
  subject_claim: username
  introspection:
    url: `+x.upstream.clients+`/introspect
    client_id: gateway
    client_secret_file: `+x.secretFile+`
rate_limit:
  default:
    user: [ { name: tight, requests: 2, window: 1h } ]
`), 0o600))
	x.gateway = serving(t, "gateway", "--config", file, "--data", storeFile(t))
}

// token asks for one and returns the status and the refresh token.
func (x *introspectedGateway) token(t *testing.T, form url.Values) (status int, refresh string) {
	t.Helper()
	status, body := postForm(t, x.gateway.clients+"/token", x.shop, form)
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	check.OK(t, json.Unmarshal([]byte(body), &answer), body)
	return status, answer.RefreshToken
}

// knows waits until so many refresh tokens and usernames lead to a user.
func (x *introspectedGateway) knows(t *testing.T, want string) {
	t.Helper()
	check.Eventually(t, want, func() bool { return strings.Contains(page(t, x.gateway.operators+"/metrics"), "\n"+want+"\n") })
}

// TestGatewayIntrospects: the user of a token that does not show one counts, by its refresh token and by the username.
func TestGatewayIntrospects(t *testing.T) {
	x := newIntrospectedGateway(t)
	x.start(t)
	password := url.Values{"grant_type": {"password"}, "username": {"Ada"}, "password": {adaPassword}} // the server's is ada
	status, refresh := x.token(t, password)
	check.Equal(t, "status", status, http.StatusOK)
	x.knows(t, "oauth_gateway_subjects 3")
	status, refresh = x.token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	check.Equal(t, "status of a refresh", status, http.StatusOK)
	for _, form := range []url.Values{password, {"grant_type": {"refresh_token"}, "refresh_token": {refresh}}} {
		status, _ = x.token(t, form)
		check.Equal(t, "status over the limit", status, http.StatusTooManyRequests)
	}
	x.gateway.stop(t)
	if log := x.gateway.log.String(); strings.Contains(log, "introspection fail") {
		t.Error(log)
	}
}
