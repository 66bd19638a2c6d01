package tokenclient

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// FuzzDecodeJWT: the claims that are shown are the JSON object of the middle part, and what a server
// sends cannot control the terminal.
func FuzzDecodeJWT(f *testing.F) {
	object := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"a"}`))
	for _, seed := range []string{"", "a.b.c", "." + object + ".", object, "x." + object + ".y.z", "." + object + "=.", ".W10.", ".bnVsbA."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		payload := decodeJWT(token)
		if payload == nil {
			return
		}
		if middle := strings.Split(token, ".")[1]; !json.Valid(payload) || base64.RawURLEncoding.EncodeToString(payload) != canonicalBase64(middle) {
			t.Errorf("%q has the claims %q", token, payload)
		}
	})
}

// canonicalBase64 removes what encoding/base64 reads over: line ends, and the bits after the last
// byte.
func canonicalBase64(s string) string {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// FuzzServerText: a wait is never negative, and text of a server has no control characters.
//
// Attack (input): A server that attacks the terminal. Control characters are not printed. Also
// tokenclient.FuzzDecodeJWT.
func FuzzServerText(f *testing.F) {
	for _, seed := range []string{"37", "-5", "1e9", "99999999999999999999", "Wed, 01 Jul 2026 12:01:30 GMT", "\x1b[2J", "\u009b1m", "\xff"} {
		f.Add(seed)
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if wait := retryAfter(text, now); wait < 0 {
			t.Errorf("wait %v", wait)
		}
		shown := printable(text)
		if strings.ContainsFunc(shown, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("shown as %q", shown)
		}
		if printable(shown) != shown {
			t.Errorf("%q is not shown as it is", shown)
		}
	})
}
