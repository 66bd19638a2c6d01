package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// keycloakTestURL is the variable that names the Keycloak.
const keycloakTestURL = "KEYCLOAK_TEST_URL"

var errNoKeycloak = errors.New(keycloakTestURL + " is not set: export " + keycloakTestURL + "=$(.ci/keycloak-test-server)")

// keycloak is a Keycloak and its administrator.
type keycloak struct {
	base  string
	admin *url.Userinfo
}

// keycloakOf returns the one at a URL with name and password.
func keycloakOf(address string) (*keycloak, error) {
	if address == "" {
		return nil, errNoKeycloak
	}
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Host == "" {
		// The error of Parse has the password in it.
		return nil, errors.New(keycloakTestURL + " must be http://NAME:PASSWORD@HOST:PORT")
	}
	k := &keycloak{admin: u.User}
	u.User = nil
	k.base = strings.TrimSuffix(u.String(), "/")
	return k, nil
}

// issued is the type of the event of a token for a client itself.
const issued = "CLIENT_LOGIN"

// newRealm makes a realm that has the clients of the demonstration and records which tokens it issues. It returns its
// name.
func (k *keycloak) newRealm(ctx context.Context) (string, error) {
	type object map[string]any
	name := "gateway-demo-" + strings.ToLower(rand.Text())
	var apps []object
	for id, secret := range secrets() {
		apps = append(apps, object{"clientId": id, "secret": secret, "publicClient": false, "serviceAccountsEnabled": true})
	}
	return name, k.call(ctx, http.MethodPost, "/admin/realms", object{
		"realm": name, "enabled": true, "clients": apps, "eventsEnabled": true, "enabledEventTypes": []string{issued},
	}, nil)
}

func (k *keycloak) deleteRealm(ctx context.Context, name string) error {
	return k.call(ctx, http.MethodDelete, "/admin/realms/"+name, nil, nil)
}

// event is a token that Keycloak has issued.
type event struct {
	Time     int64  `json:"time"` // milliseconds since 1970
	ClientID string `json:"clientId"`
}

func (e event) at() time.Time { return time.UnixMilli(e.Time) }

// maxEvents is how many a run may have, and maxAnswer how long they are, in bytes.
const (
	maxEvents = 20_000
	maxAnswer = 32 << 20
)

// events returns what the realm has recorded.
func (k *keycloak) events(ctx context.Context, realm string) (all []event, err error) {
	path := fmt.Sprintf("/admin/realms/%s/events?type=%s&max=%d", realm, issued, maxEvents)
	if err := k.call(ctx, http.MethodGet, path, nil, &all); err != nil {
		return nil, err
	}
	if len(all) == maxEvents {
		return nil, fmt.Errorf("read events: there are more than %d; choose a shorter time", maxEvents-1)
	}
	return all, nil
}

// call sends a request to the admin REST API and reads its answer into the value, if there is one. The administrator's token
// is good for a minute, so each call has a new one.
func (k *keycloak) call(ctx context.Context, method, path string, body, into any) error {
	password, _ := k.admin.Password()
	by := oauth2.Config{ClientID: "admin-cli", Endpoint: oauth2.Endpoint{
		TokenURL: k.base + "/realms/master/protocol/openid-connect/token", AuthStyle: oauth2.AuthStyleInParams,
	}}
	token, err := by.PasswordCredentialsToken(ctx, k.admin.Username(), password)
	if err != nil {
		return fmt.Errorf("sign in at Keycloak: %w", err)
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, k.base+path, bytes.NewReader(sent)) //nolint:gosec // G704: the user's
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	token.SetAuthHeader(req)
	return do(req, into)
}

// do sends a request and reads the answer into the value, if there is one.
func do(req *http.Request, into any) (err error) {
	res, err := http.DefaultClient.Do(req) //nolint:gosec // G704: the user's
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case res.StatusCode > 299:
		return fmt.Errorf("%s %s: %s: %.200s", req.Method, req.URL.Path, res.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
