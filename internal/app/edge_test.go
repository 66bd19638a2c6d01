package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/ratelimit"
)

func TestOperatorsChangeLimitsOfARunningServer(t *testing.T) {
	r := start(t, limited(t, nil), io.Discard)
	var operator clientcfg.Client
	operator.ID = "ops"
	clientcfg.MakeOperator(&operator)
	_, secret, err := CreateClient(t.Context(), r.base.store, operator, time.Now())
	check.OK(t, err)
	check.OK(t, r.base.clients.Renew(t.Context(), 0))
	client := newClient(t, nil)
	settings := "http://" + r.AdminAddr() + "/admin/v1/policies/shop"
	if res := call(t, client, http.MethodGet, settings, "", nil, ""); res.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", res.status)
	}
	token := tokenFor(t, client, r.Issuer(), "ops", secret)
	read := call(t, client, http.MethodGet, settings, "", http.Header{"Authorization": {"Bearer " + token}}, "")
	if read.status != http.StatusOK {
		t.Fatalf("%d %s", read.status, read.body)
	}
	for range 3 {
		r.token(t, client) // more than the limit in the file
	}
	changed := call(t, client, http.MethodPatch, settings, `{"trusted": true}`, http.Header{
		"Authorization": {"Bearer " + token}, "If-Match": {read.etag}, "Content-Type": {"application/merge-patch+json"},
	}, "?reason=test")
	if changed.status != http.StatusOK {
		t.Fatalf("%d %s", changed.status, changed.body)
	}
	if got := r.token(t, client); got.status != http.StatusOK {
		t.Errorf("a client that is trusted now gets %d", got.status)
	}
	client.CloseIdleConnections()
}

// Invalid limits that were written directly into the store are ignored. The server keeps the last
// valid ones and reports that on /readyz.
func TestImpossibleStoredLimitsAreRefused(t *testing.T) {
	r := start(t, limited(t, nil), io.Discard)
	bad, err := clientcfg.ChangeSettings(clientcfg.SettingsOverride{Policy: ratelimit.Policy{User: []ratelimit.Limit{{Name: "none"}}}})
	check.OK(t, err)
	appendChange(t, r.base.store, time.Now(), bad)
	good := r.limiter.policies.Snapshot().Settings()
	check.OK(t, r.base.follower.Refresh(t.Context()))
	ready := r.edge.ready.report(true)
	if ready.Status != httpapi.Degraded || ready.Checks["limits"] == "" {
		t.Errorf("%+v", ready)
	}
	check.Equal(t, "settings", r.limiter.policies.Snapshot().Settings(), good)
}

// reply is an answer of the admin API.
type reply struct {
	status     int
	etag, body string
}

func call(t *testing.T, client *http.Client, method, address, body string, header http.Header, query string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address+query, strings.NewReader(body))
	check.OK(t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	check.OK(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	check.OK(t, err)
	return reply{res.StatusCode, res.Header.Get("ETag"), string(text)}
}

func tokenFor(t *testing.T, client *http.Client, issuer, id, secret string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	answer := call(t, client, http.MethodPost, issuer+"/token", form.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "")
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(answer.body), &token); err != nil || token.AccessToken == "" {
		t.Fatalf("%+v", answer)
	}
	return token.AccessToken
}

// The metadata does not advertise a grant that RFC 9700 2.4 forbids, unless a client is registered
// for it.
//
// Attack (rfc9700): 2.4 password grant. **Deviation**: it exists for clients registered for it.
// Metadata names it only then. Also registry.TestCreateClientChoosesTheUsualGrants.
func TestPasswordGrantIsAdvertisedOnlyWhereItIsUsed(t *testing.T) {
	r := start(t, testConfig(t), io.Discard)
	advertised := func() bool {
		for _, g := range grantTypes(r.base.clients.Directory()) {
			if g == clientcfg.Password {
				return true
			}
		}
		return false
	}
	if advertised() {
		t.Error("it is advertised without a client that uses it")
	}
	register := func(ctx context.Context) error {
		_, _, err := CreateClient(ctx, r.base.store, clientcfg.Client{ID: "legacy", Grants: []clientcfg.Grant{clientcfg.Password}}, time.Now())
		if err != nil {
			return err
		}
		return r.base.clients.Renew(ctx, 0)
	}
	check.OK(t, register(t.Context()))
	if !advertised() {
		t.Error("it is not advertised although a client uses it")
	}
}
