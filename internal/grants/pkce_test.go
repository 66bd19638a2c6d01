package grants

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckVerifier begins with the example of RFC 7636 appendix B.
func TestCheckVerifier(t *testing.T) {
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	long := strings.Repeat("aZ09-._~", 16)
	for name, tc := range map[string]struct {
		challenge, verifier string
		ok                  bool
	}{
		"RFC 7636 B":        {challenge, verifier, true},
		"longest":           {s256(long), long, true},
		"too long":          {s256(long + "a"), long + "a", false},
		"too short":         {s256(verifier[1:]), verifier[1:], false},
		"reserved":          {s256(verifier + "/"), verifier + "/", false},
		"white space":       {s256(verifier + " "), verifier + " ", false},
		"not ASCII":         {s256(verifier + "é"), verifier + "é", false},
		"padded challenge":  {challenge + "=", verifier, false},
		"neither":           {"", "", true},
		"verifier alone":    {"", verifier, false},
		"challenge alone":   {challenge, "", false},
		"plain":             {verifier, verifier, false},
		"challenge as such": {challenge, challenge, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.ok, checkVerifier(tc.challenge, tc.verifier) == nil)
		})
	}
}
