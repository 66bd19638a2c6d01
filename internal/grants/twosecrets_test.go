package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestTwoSecrets: during a rotation both secrets are accepted, and each use is reported for the one that
// it was; afterwards the new one only.
func TestTwoSecrets(t *testing.T) {
	type use struct {
		clientID string
		digest   secret.Digest
		at       time.Time
	}
	var uses []use
	w := newWorld(t, func(o *grants.Options) {
		o.SecretUsed = func(id string, d secret.Digest, at time.Time) { uses = append(uses, use{id, d, at}) }
	})
	w.clients["shop"].Former = clientcfg.FormerSecret{Digest: secret.DigestOf("former"), Until: start.Add(time.Hour)}
	ask := func(presented string) error {
		_, err := w.service.Token(t.Context(), grants.TokenRequest{
			GrantType: "client_credentials", Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: presented},
		})
		return err
	}
	check.OK(t, ask(secretOf("shop")))
	w.clock.Advance(time.Hour - 1)
	check.OK(t, ask("former"))
	w.clock.Advance(1)
	for _, wrong := range []string{"former", "", "x", string(make([]byte, 32))} {
		wantCode(t, grants.InvalidClient, ask(wrong))
	}
	check.OK(t, ask(secretOf("shop")))
	w.clients["shop"].Former = clientcfg.FormerSecret{Until: start.Add(24 * time.Hour)} // without a secret
	wantCode(t, grants.InvalidClient, ask(""))
	w.tokens("app") // a public client has no secret that could be used
	check.Equal(t, "uses", uses, []use{
		{"shop", secret.DigestOf(secretOf("shop")), start},
		{"shop", secret.DigestOf("former"), start.Add(time.Hour - 1)},
		{"shop", secret.DigestOf(secretOf("shop")), start.Add(time.Hour)},
	})
}
