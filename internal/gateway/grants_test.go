package gateway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

// onlyFor sets a limit of one request a minute for each user, for these grants, and no other limit.
func onlyFor(t *testing.T, grants ratelimit.Grants) func(*gateway.Options) {
	t.Helper()
	limit := ratelimit.NewLimit("some", 1, time.Minute)
	limit.Grants = grants
	return under(t, func(s *ratelimit.Settings) { s.Default.User = []ratelimit.Limit{limit} })
}

const exchange = "grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=s"

// TestLimitsForSomeGrants checks that such limits count and deny only requests of these grants.
func TestLimitsForSomeGrants(t *testing.T) {
	const device = "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=d"
	for name, tc := range map[string]struct {
		of   ratelimit.Grants
		form []string
		want []int
	}{
		"refreshes": {
			ratelimit.GrantRefresh,
			[]string{device, exchange, "grant_type=urn:x&y=z", "grant_type=refresh_token&refresh_token=r1", "grant_type=refresh_token&refresh_token=r1", exchange},
			[]int{200, 200, 200, 200, 429, 200},
		},
		"passwords": {
			ratelimit.GrantPassword,
			[]string{device, "grant_type=password&username=ada&password=p", "grant_type=password&username=ada&password=p", device},
			[]int{200, 200, 429, 200},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, onlyFor(t, tc.of))
			w.upstream(issues("ada", "r1"))
			w.wantStatus("code", codeGrant, 200)
			for i, form := range tc.form {
				w.wantStatus(form, form, tc.want[i])
			}
		})
	}
}

// TestDeciderTellsGrantsApart also covers the grants that only a limit at a gateway can name.
func TestDeciderTellsGrantsApart(t *testing.T) {
	const ask = `{"client_id":"shop","user":"ada","grant_type":"`
	h := newDecider(t, onlyFor(t, ratelimit.GrantExchange))
	for i, want := range []asked{
		{body: ask + `urn:ietf:params:oauth:grant-type:device_code"}`, want: 200},
		{body: ask + `urn:x"}`, want: 200},
		{body: ask + `urn:ietf:params:oauth:grant-type:token-exchange"}`, want: 200},
		{body: ask + `urn:ietf:params:oauth:grant-type:token-exchange"}`, want: 429},
		{body: ask + `refresh_token"}`, want: 200},
		{body: `{"client_id":"shop","user":"ada"}`, want: 429},
	} {
		want.path, want.kind = gateway.QuestionPath, "application/json"
		check.Equal(t, fmt.Sprint("status of question ", i+1), want.send(h).Code, want.want)
	}
}

// TestGrantsInAnotherCase checks that a grant in another case cannot avoid a limit, because some
// servers ignore the case.
func TestGrantsInAnotherCase(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("ada", "r1"))
	for form, want := range map[string]int{
		"grant_type=Refresh_Token&refresh_token=r1":                        http.StatusBadRequest,
		"grant_type=PASSWORD&username=ada&password=p":                      http.StatusBadRequest,
		"grant_type=urn:IETF:params:oauth:grant-type:device_code&x=y":      http.StatusBadRequest,
		"grant_type=ExternalLogin&x=y":                                     http.StatusOK,
		"grant_type=http%3A%2F%2Fauth0.com%2Foauth%2Fgrant-type%2FMfa&x=y": http.StatusOK,
	} {
		check.Equal(t, form, w.token(form).status, want)
	}
}
