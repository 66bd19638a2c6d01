package grants

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"oauth-server/internal/clientcfg"
)

// FuzzPKCE: only the verifier of its challenge redeems a code, and a public client gets no code
// without a challenge.
func FuzzPKCE(f *testing.F) {
	const example = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	f.Add(challengeOf(example), "S256", example, true)
	f.Add(example, "plain", example, false)
	f.Add("", "", "", true)
	f.Add("", "", "", false)
	f.Add("", "", example, false)
	f.Add("", "S256", strings.Repeat("a", 128), false)
	f.Add(strings.Repeat("~", 43), "S256", strings.Repeat("~", 129), true)
	f.Fuzz(func(t *testing.T, challenge, method, verifier string, public bool) {
		client := &clientcfg.Client{Public: public, WithoutPKCE: !public}
		sound := method == "S256" && len(challenge) == 43 && allUnreserved(challenge)
		if err := checkChallenge(client, challenge, method); (err == nil) != (sound || challenge == "" && method == "" && !public) {
			t.Errorf("challenge %q with the method %q: %v", challenge, method, err)
		}
		sum := sha256.Sum256([]byte(verifier))
		fits := challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && len(verifier) >= 43 && len(verifier) <= 128 && allUnreserved(verifier)
		if err := checkVerifier(challenge, verifier); (err == nil) != (fits || challenge == "" && verifier == "") {
			t.Errorf("verifier %q for the challenge %q: %v", verifier, challenge, err)
		}
		if own := challengeOf(verifier); len(verifier) >= 43 && len(verifier) <= 128 && allUnreserved(verifier) {
			if err := checkVerifier(own, verifier); err != nil {
				t.Errorf("verifier %q for its own challenge: %v", verifier, err)
			}
			if err := checkChallenge(&clientcfg.Client{Public: true}, own, "S256"); err != nil {
				t.Errorf("its challenge %q: %v", own, err)
			}
		}
	})
}
