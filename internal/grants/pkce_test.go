package grants

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// TestCheckVerifier starts with the example of RFC 7636 appendix B.
func TestCheckVerifier(t *testing.T) {
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	long := strings.Repeat("aZ09-._~", 16)
	for name, tc := range map[string]struct {
		challenge, verifier string
		ok                  bool
	}{
		"RFC 7636 B":        {challenge, verifier, true},
		"longest":           {challengeOf(long), long, true},
		"too long":          {challengeOf(long + "a"), long + "a", false},
		"too short":         {challengeOf(verifier[1:]), verifier[1:], false},
		"reserved":          {challengeOf(verifier + "/"), verifier + "/", false},
		"white space":       {challengeOf(verifier + " "), verifier + " ", false},
		"not ASCII":         {challengeOf(verifier + "é"), verifier + "é", false},
		"padded challenge":  {challenge + "=", verifier, false},
		"neither":           {"", "", true},
		"verifier alone":    {"", verifier, false},
		"challenge alone":   {challenge, "", false},
		"plain":             {verifier, verifier, false},
		"challenge as such": {challenge, challenge, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkVerifier(tc.challenge, tc.verifier); (err == nil) != tc.ok {
				t.Errorf("checkVerifier(%q, %q) = %v, want ok %v", tc.challenge, tc.verifier, err, tc.ok)
			}
		})
	}
}
