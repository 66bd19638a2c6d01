package secret

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
)

func TestGivenSecrets(t *testing.T) {
	good := New()
	for name, tt := range map[string]struct{ text, refusal string }{
		"one of ours":          {good, ""},
		"openssl rand -base64": {"q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=", ""},
		"openssl rand -hex":    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ""},
		"a digit of it unused": {strings.Repeat("0123456789abcde7", 4), ""},
		"empty":                {"", "0 characters"},
		"short":                {good[:41], "41 characters"},
		"a password":           {"correct horse battery staple", "28 characters"},
		"a sentence":           {"correct horse battery staple, and a few more words", "visible ASCII"},
		"repeated":             {strings.Repeat("secret", 20), "different"},
		"a line break":         {good + "\n", "visible ASCII"},
		"not ASCII":            {good + "é", "visible ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			digest, err := Given(tt.text)
			if tt.refusal != "" {
				check.ErrorSays(t, err, tt.refusal)
				return
			}
			check.OK(t, err)
			check.Equal(t, "it matches", digest.Matches(tt.text), true)
		})
	}
}
