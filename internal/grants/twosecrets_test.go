package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// TestTwoSecrets: during a rotation both secrets are accepted, and each use is reported with the
// secret used. Afterwards only the new one is accepted.
//
// Attack (revocation): An old client secret. At most two secrets are valid. The former one ends
// on time. Also e2e.TestTwoSecretsDuringARotation.
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
		wantCode(t, oautherr.InvalidClient, ask(wrong))
	}
	check.OK(t, ask(secretOf("shop")))
	w.clients["shop"].Former = clientcfg.FormerSecret{Until: start.Add(24 * time.Hour)} // without a secret
	wantCode(t, oautherr.InvalidClient, ask(""))
	w.tokens("app") // a public client has no secret
	check.Equal(t, "uses", uses, []use{
		{"shop", secret.DigestOf(secretOf("shop")), start},
		{"shop", secret.DigestOf("former"), start.Add(time.Hour - 1)},
		{"shop", secret.DigestOf(secretOf("shop")), start.Add(time.Hour)},
	})
}

// TestRawSecret: a client that does not form-encode its secret in HTTP Basic is accepted, with
// either of its secrets. A client that sends neither spelling of a secret fails once.
func TestRawSecret(t *testing.T) {
	var uses []secret.Digest
	w := newWorld(t, func(o *grants.Options) {
		o.SecretUsed = func(_ string, d secret.Digest, _ time.Time) { uses = append(uses, d) }
	})
	current, former, decoded := secret.DigestOf("a+b%41"), secret.DigestOf("c+d"), secret.DigestOf("e f")
	w.clients["shop"].SecretDigest = current
	w.clients["shop"].Former = clientcfg.FormerSecret{Digest: former, Until: start.Add(time.Hour)}
	ask := func(text, raw string) error {
		_, err := w.service.Token(t.Context(), grants.TokenRequest{
			GrantType: "client_credentials", Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: text, RawSecret: raw},
		})
		return err
	}
	check.OK(t, ask("a bA", "a+b%41"))
	check.OK(t, ask("a+b%41", "a%2Bb%2541"))
	check.OK(t, ask("c d", "c+d"))
	for _, wrong := range []string{"", "a+b%42", "a bA"} {
		wantCode(t, oautherr.InvalidClient, ask("a bA", wrong))
	}
	w.clients["shop"].SecretDigest = decoded
	check.OK(t, ask("e f", "e+f"))
	w.clock.Advance(time.Hour)
	wantCode(t, oautherr.InvalidClient, ask("c d", "c+d"))
	check.Equal(t, "uses", uses, []secret.Digest{current, current, former, decoded})
}
