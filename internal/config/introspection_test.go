package config

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
)

func TestIntrospection(t *testing.T) {
	const at = "OAUTH_INTROSPECTION_URL=https://idp.example/introspect "
	for name, tc := range map[string]struct{ environ, secret string }{
		"none":           {"", ""},
		"no credentials": {"OAUTH_INTROSPECTION_URL=http://127.0.0.1:4445/admin/oauth2/introspect", ""},
		"value":          {at + "OAUTH_INTROSPECTION_CLIENT_ID=gateway OAUTH_INTROSPECTION_CLIENT_SECRET=s3cret", "s3cret"},
		"file":           {at + "OAUTH_INTROSPECTION_CLIENT_ID=gateway OAUTH_INTROSPECTION_CLIENT_SECRET_FILE=" + secretFile(t, " s3cret\r\n"), " s3cret"},
		"http elsewhere": {"OAUTH_INSECURE=true OAUTH_INTROSPECTION_URL=http://hydra:4445/introspect", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(Sources{Environ: strings.Fields(upstreamEnv + tc.environ)})
			check.OK(t, err)
			if secret, err := cfg.Gateway.Introspection.Secret(); err != nil || secret != tc.secret {
				t.Errorf("Secret() = %q, %v", secret, err)
			}
		})
	}
}

func TestIntrospectionRefused(t *testing.T) {
	const at, id = "OAUTH_INTROSPECTION_URL=https://idp.example/introspect ", "OAUTH_INTROSPECTION_CLIENT_ID=gateway "
	const secret = "OAUTH_INTROSPECTION_CLIENT_SECRET="
	for name, tc := range map[string]struct{ environ, want string }{
		"no URL":          {upstreamEnv + id + secret + "s3cret", "gateway.introspection.url: is missing"},
		"no URL at all":   {upstreamEnv + "OAUTH_INTROSPECTION_URL=idp.example/introspect", `gateway.introspection.url: "idp.example/introspect" is not a URL`},
		"another scheme":  {upstreamEnv + "OAUTH_INTROSPECTION_URL=ftp://idp.example/", "is not a URL"},
		"credentials":     {upstreamEnv + "OAUTH_INTROSPECTION_URL=https://a:s3cret@idp.example/", "must have no user information"},
		"a fragment":      {upstreamEnv + "OAUTH_INTROSPECTION_URL=https://idp.example/#x", "no fragment"},
		"http elsewhere":  {upstreamEnv + "OAUTH_INTROSPECTION_URL=http://192.0.2.1/introspect", "gateway.introspection.url: must be https"},
		"no secret":       {upstreamEnv + at + id, "gateway.introspection.client_secret: or client_secret_file is required"},
		"no client_id":    {upstreamEnv + at + secret + "s3cret", "gateway.introspection.client_id: is required"},
		"no such file":    {upstreamEnv + at + id + "OAUTH_INTROSPECTION_CLIENT_SECRET_FILE=no-such", "client_secret_file: open no-such"},
		"a printed one":   {upstreamEnv + at + id + secret + Redacted, "client_secret: is the placeholder for a secret"},
		"without gateway": {at, "gateway.introspection.url: needs upstream"},
		"with a judge":    {"OAUTH_JUDGE=true " + at, "gateway.introspection.url: needs upstream"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Sources{Environ: strings.Fields(tc.environ)})
			check.ErrorSays(t, err, tc.want)
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the secret is in the message: %v", err)
			}
		})
	}
}
