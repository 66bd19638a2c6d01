package tokenrequest_test

import (
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/tokenrequest"
)

// TestCredentials compares the secret and the password of requests with those of a request with the
// secret "a b" and the password "p".
func TestCredentials(t *testing.T) {
	jsonType := header("Content-Type", "application/json")
	long := strings.Repeat("x", 80)
	none := tokenrequest.Credentials{}
	same := tokenrequest.Credentials{Secret: digest("a b"), Password: digest("p")}
	for name, tt := range map[string]struct {
		header http.Header
		body   string
		want   tokenrequest.Credentials
	}{
		"in the body":           {form(), "client_id=c&client_secret=a+b&grant_type=password&password=p", same},
		"escaped":               {form(), "client_id=c&client_secret=a%20b&grant_type=password&pass%77ord=%70", same},
		"escaped twice":         {form(), "client_id=c&client_secret=a%2520b&grant_type=password&password=%2570", same},
		"with space around":     {form(), "client_id=c&client_secret=+a+b+%0a&grant_type=password&password=p+", same},
		"in HTTP Basic":         {form("Authorization", basic("c:a b")), "grant_type=password&password=p", same},
		"in HTTP Basic, a form": {form("Authorization", basic("c:a+b")), "grant_type=password&password=p", same},
		"JSON":                  {jsonType, `{"client_id":"c","client_secret":"a b","grant_type":"password","password":"\u0070"}`, same},
		"another grant":         {form(), "client_id=c&client_secret=a+b&grant_type=refresh_token&password=p", tokenrequest.Credentials{Secret: same.Secret}},
		"two secrets":           {form("Authorization", basic("c:a b")), "client_secret=x&grant_type=password&password=p", tokenrequest.Credentials{Password: same.Password}},
		"two passwords":         {form(), "client_id=c&grant_type=password&password=p&password=q", none},
		"no secret":             {form(), "client_id=c&grant_type=client_credentials", none},
		"an empty one":          {form("Authorization", basic("c:")), "grant_type=client_credentials", none},
		"longer than bcrypt's":  {form(), "client_id=c&client_secret=" + long, tokenrequest.Credentials{Secret: digest(long[:72])}},
	} {
		t.Run(name, func(t *testing.T) {
			r, got, err := tokenrequest.Read(tt.header, "", []byte(tt.body))
			check.OK(t, err)
			check.Equal(t, "client", r.ClientID, "c")
			check.Equal(t, "credentials", got, tt.want)
		})
	}
}
