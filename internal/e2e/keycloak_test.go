package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// keycloakTestURL is the variable that names the Keycloak of the tests.
const keycloakTestURL = "KEYCLOAK_TEST_URL"

// realm is a realm of its own at the Keycloak of KEYCLOAK_TEST_URL.
type realm struct {
	name   string
	base   string // of the Keycloak
	admin  *url.Userinfo
	client *http.Client
}

// keycloakSecret is that of every client of a realm.
const keycloakSecret = "the secret of every client"

// newRealm makes a realm with the two users of all tests, and with these confidential clients, which have every grant.
// Events of tokens are recorded, and refresh tokens are rotated. The test is skipped if there is no Keycloak.
func newRealm(tb testing.TB, clients ...string) *realm {
	tb.Helper()
	address := os.Getenv(keycloakTestURL)
	if address == "" {
		tb.Skip(keycloakTestURL + " is not set: export " + keycloakTestURL + "=$(.ci/keycloak-test-server)")
	}
	u, err := url.Parse(address)
	check.OK(tb, err, keycloakTestURL)
	r := &realm{name: "e2e-" + strings.ToLower(oauth2.GenerateVerifier()[:12]), admin: u.User, client: newHTTPClient(tb)}
	u.User = nil
	r.client.Timeout = 3 * time.Minute // a new realm takes Keycloak five seconds of both cores, beside other tests far more
	r.base = strings.TrimSuffix(u.String(), "/")
	r.call(tb.Context(), tb, http.MethodPost, "/admin/realms", r.representation(clients), nil)
	tb.Cleanup(func() {
		r.call(context.WithoutCancel(tb.Context()), tb, http.MethodDelete, "/admin/realms/"+r.name, nil, nil)
	})
	return r
}

func (r *realm) representation(clients []string) any {
	type object map[string]any
	var apps, people []object
	for _, id := range clients {
		apps = append(apps, object{
			"clientId": id, "secret": keycloakSecret, "publicClient": false, "redirectUris": []string{loopbackURI},
			"serviceAccountsEnabled": true, "directAccessGrantsEnabled": true, "standardFlowEnabled": true,
			"authorizationServicesEnabled": true, // everybody has permission to its one resource
			"authorizationSettings":        object{"policyEnforcementMode": "PERMISSIVE", "resources": []object{{"name": "shelf"}}},
		})
	}
	for _, name := range []string{user, secondUser} {
		people = append(people, object{
			"username": name, "enabled": true, "email": name + "@shop.example", "emailVerified": true, "firstName": name, "lastName": name,
			"credentials": []object{{"type": "password", "value": password, "temporary": false}},
		})
	}
	return object{
		"realm": r.name, "enabled": true, "clients": apps, "users": people,
		"revokeRefreshToken": true, "refreshTokenMaxReuse": 0,
		"eventsEnabled": true, "enabledEventTypes": slices.Concat(issuing, failing), // by default refreshes are not recorded
	}
}

// call sends a request to the admin REST API and reads its answer into the value, if there is one.
func (r *realm) call(ctx context.Context, tb testing.TB, method, path string, body, into any) {
	tb.Helper()
	secret, _ := r.admin.Password()
	ctx = context.WithValue(ctx, oauth2.HTTPClient, r.client)
	operator := oauth2.Config{ClientID: "admin-cli", Endpoint: oauth2.Endpoint{
		TokenURL: r.base + "/realms/master/protocol/openid-connect/token", AuthStyle: oauth2.AuthStyleInParams,
	}}
	token, err := operator.PasswordCredentialsToken(ctx, r.admin.Username(), secret) // it expires in a minute
	check.OK(tb, err)
	sent, err := json.Marshal(body)
	check.OK(tb, err)
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(sent))
	check.OK(tb, err)
	req.Header.Set("Content-Type", "application/json")
	token.SetAuthHeader(req)
	got := send(tb, r.client, req)
	if got.status > 299 {
		tb.Fatalf("Keycloak answers %s %s with status %d: %s", method, path, got.status, got.body)
	}
	if into != nil {
		check.OK(tb, json.Unmarshal([]byte(got.body), into))
	}
}

// Keycloak's events of a token request: one that got a token, and one that did not.
var (
	issuing = []string{"CLIENT_LOGIN", "LOGIN", "CODE_TO_TOKEN", "REFRESH_TOKEN", "PERMISSION_TOKEN"}
	failing = []string{"CLIENT_LOGIN_ERROR", "LOGIN_ERROR", "CODE_TO_TOKEN_ERROR", "REFRESH_TOKEN_ERROR", "PERMISSION_TOKEN_ERROR"}
)

// event is what Keycloak records of a request.
type event struct {
	Type      string `json:"type"`
	ClientID  string `json:"clientId"`
	UserID    string `json:"userId"`
	IPAddress string `json:"ipAddress"`
}

// events returns what Keycloak has recorded of a client.
func (r *realm) events(tb testing.TB, clientID string) (events []event) {
	tb.Helper()
	r.call(tb.Context(), tb, http.MethodGet, "/admin/realms/"+r.name+"/events?max=1000&client="+url.QueryEscape(clientID), nil, &events)
	return events
}

// wantEvents checks how many events of each type Keycloak has recorded of a client.
func (r *realm) wantEvents(tb testing.TB, clientID string, want map[string]int) {
	tb.Helper()
	got := map[string]int{}
	for _, e := range r.events(tb, clientID) {
		got[e.Type]++
	}
	check.Equal(tb, "Keycloak's events of "+clientID, got, want)
}

// path is that of an endpoint of the realm.
func (r *realm) path(endpoint string) string {
	return "/realms/" + r.name + cmp.Or(endpoint, "/protocol/openid-connect/token")
}

// loopbackJar keeps Secure cookies of a loopback address over http, as browsers do.
type loopbackJar struct{ *cookiejar.Jar }

// SetCookies implements [http.CookieJar].
func (j loopbackJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		c.Secure = false
	}
	j.Jar.SetCookies(u, cookies)
}

// newKeycloakBrowser can sign in with Keycloak's pages.
func newKeycloakBrowser(tb testing.TB) *browser {
	tb.Helper()
	b := newBrowser(tb)
	jar, err := cookiejar.New(nil)
	check.OK(tb, err)
	b.client.Jar = loopbackJar{jar}
	return b
}

// signInAtKeycloak goes from the authorization request to the client's address, by the login form.
func (b *browser) signInAtKeycloak(address, username string) url.Values {
	b.tb.Helper()
	b.open(address)
	if len(b.page.forms) == 0 {
		b.tb.Fatalf("no form on the page; status %d:\n%s", b.page.status, b.page.text)
	}
	b.submit(b.page.forms[0].action, "username", username, "password", password)
	return b.sentTo().Query()
}
