package keys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

const issuer = "https://auth.example.com"

var start = time.Unix(1_700_000_000, 0)

func testClaims() Claims {
	return Claims{
		Subject: "alice", Audience: []string{"https://api.example.com"}, ClientID: "shop",
		Scopes: []string{"read", "write"}, IssuedAt: start, ExpiresAt: start.Add(time.Hour),
		AuthTime: start.Add(-time.Minute), ID: "jti-1", Family: "fam-1",
		ClientStamp: secret.Stamp{ID: "client", Count: 1}, UserStamp: secret.Stamp{ID: "user", Count: 1 << 40},
	}
}

func openRing(t *testing.T, store Store, opts Options) *Ring {
	t.Helper()
	opts.Issuer = issuer
	if opts.Now == nil {
		opts.Now = func() time.Time { return start }
	}
	r, err := Open(t.Context(), store, opts)
	check.OK(t, err)
	return r
}

// TestSignIsRFC9068 reads a token with another JOSE implementation, using only the published key
// set.
func TestSignIsRFC9068(t *testing.T) {
	for _, alg := range Algorithms() {
		t.Run(string(alg), func(t *testing.T) {
			r := openRing(t, &memStore{}, Options{Algorithm: alg})
			token, err := r.Sign(testClaims())
			check.OK(t, err)

			var set jose.JSONWebKeySet
			check.OK(t, json.Unmarshal(r.JWKS(), &set))
			jws, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
			check.OK(t, err)
			check.Equal(t, "typ", jws.Signatures[0].Header.ExtraHeaders["typ"], "at+jwt")
			payload, err := jws.Verify(set)
			check.OK(t, err)

			var got map[string]any
			check.OK(t, json.Unmarshal(payload, &got))
			want := map[string]any{
				"iss": issuer, "sub": "alice", "aud": "https://api.example.com", "client_id": "shop",
				"scope": "read write", "iat": 1.7e9, "exp": 1.7e9 + 3600, "auth_time": 1.7e9 - 60, "jti": "jti-1", "fam": "fam-1",
				"cst": map[string]any{"id": "client", "n": 1.0}, "ust": map[string]any{"id": "user", "n": float64(1 << 40)},
			}
			check.Equal(t, "claims", got, want)
		})
	}
}

func TestVerifyReadsWhatSignWrote(t *testing.T) {
	r := openRing(t, &memStore{}, Options{})
	for name, edit := range map[string]func(*Claims){
		"of a user": func(*Claims) {},
		"of a client": func(c *Claims) {
			c.AuthTime, c.Family, c.Subject, c.UserStamp = time.Time{}, "", "shop", secret.Stamp{}
		},
		"without stamps":     func(c *Claims) { c.ClientStamp, c.UserStamp = secret.Stamp{}, secret.Stamp{} },
		"several audiences":  func(c *Claims) { c.Audience = []string{"a", "b"} },
		"without scopes":     func(c *Claims) { c.Scopes = []string{} },
		"names with escapes": func(c *Claims) { c.Subject = `a "quoted" <name> ünï` },
	} {
		t.Run(name, func(t *testing.T) {
			want := testClaims()
			edit(&want)
			token, err := r.Sign(want)
			check.OK(t, err)
			got, err := r.Verify(token, start)
			check.OK(t, err)
			want.Issuer = issuer
			check.Equal(t, "Verify()", got, want)
		})
	}
}

// forge signs an arbitrary header and payload with a key.
func forge(t *testing.T, k *key, header, payload string) string {
	t.Helper()
	input := b64([]byte(header)) + "." + b64([]byte(payload))
	sig, err := k.signature(input)
	check.OK(t, err)
	return input + "." + b64(sig)
}

// Attack (input): Forged access tokens. Only a published key and its own algorithm are accepted,
// never `none` or HMAC. Also keys.FuzzVerify.
func TestVerifyRefuses(t *testing.T) {
	r := openRing(t, &memStore{}, Options{})
	k := r.current.Load().own[0]
	stranger := openRing(t, &memStore{}, Options{})
	header := `{"alg":"ES256","kid":"` + k.record.ID + `","typ":"at+jwt"}`
	payload := `{"iss":"` + issuer + `","sub":"a","exp":1700003600,"iat":1700000000,"jti":"x"}`
	good := forge(t, k, header, payload)
	wantGood(t, r, good, start)

	edited := func(s, from, to string) string {
		out := strings.Replace(s, from, to, 1)
		if out == s {
			t.Fatalf("%q does not hold %q", s, from)
		}
		return out
	}
	hs := func() string {
		der, err := x509.MarshalPKIXPublicKey(k.public)
		check.OK(t, err)
		input := b64([]byte(edited(header, "ES256", "HS256"))) + "." + b64([]byte(payload))
		mac := hmac.New(sha256.New, der)
		mac.Write([]byte(input))
		return input + "." + b64(mac.Sum(nil))
	}
	foreign, err := stranger.Sign(testClaims())
	check.OK(t, err)

	for name, token := range map[string]string{
		"empty":                  "",
		"garbage":                "a.b.c",
		"two parts":              "a.b",
		"too long":               good + strings.Repeat("A", maxTokenLength),
		"signature cut":          good[:len(good)-2],
		"signature of another":   good[:strings.LastIndex(good, ".")] + foreign[strings.LastIndex(foreign, "."):],
		"padding":                good + "==",
		"white space":            good + "\n",
		"alg none":               b64([]byte(edited(header, "ES256", "none"))) + "." + b64([]byte(payload)) + ".",
		"HMAC by the public key": hs(),
		"key not ours":           foreign,
		"alg not the key's":      forge(t, k, edited(header, "ES256", "EdDSA"), payload),
		"no kid":                 forge(t, k, `{"alg":"ES256","typ":"at+jwt"}`, payload),
		"kid no string":          forge(t, k, `{"alg":"ES256","kid":1,"typ":"at+jwt"}`, payload),
		"another typ":            forge(t, k, edited(header, "at+jwt", "JWT"), payload),
		"critical extension":     forge(t, k, edited(header, `"typ"`, `"crit":["x"],"x":1,"typ"`), payload),
		"another issuer":         forge(t, k, header, edited(payload, issuer, issuer+"/")),
		"no issuer":              forge(t, k, header, edited(payload, `"iss":"`+issuer+`",`, "")),
		"expired":                forge(t, k, header, edited(payload, "1700003600", "1700000000")),
		"no expiry":              forge(t, k, header, edited(payload, `"exp":1700003600,`, "")),
		"payload no object":      forge(t, k, header, `[]`),
		"audience no string":     forge(t, k, header, edited(payload, `"sub"`, `"aud":{},"sub"`)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err = r.Verify(token, start)
			check.ErrorIs(t, err, ErrInvalidToken)
		})
	}
}

// TestVerifyExpiryHasNoLeeway: a token is valid up to the last moment before exp.
func TestVerifyExpiryHasNoLeeway(t *testing.T) {
	r := openRing(t, &memStore{}, Options{})
	token, err := r.Sign(testClaims())
	check.OK(t, err)
	exp := start.Add(time.Hour)
	wantGood(t, r, token, exp.Add(-time.Nanosecond))
	_, err = r.Verify(token, exp)
	check.ErrorIs(t, err, ErrInvalidToken)
}

func FuzzVerify(f *testing.F) {
	r, err := Open(f.Context(), &memStore{}, Options{Issuer: issuer, Now: func() time.Time { return start }})
	check.OK(f, err)
	good, err := r.Sign(testClaims())
	check.OK(f, err)
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		// ECDSA signs header and payload, so only the token itself may pass.
		if _, err := r.Verify(token, start); err == nil && token != good {
			t.Fatalf("%q passed", token)
		}
	})
}

func decode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	check.OK(t, err)
	return b
}

// TestThumbprint has the examples of the RFCs.
func TestThumbprint(t *testing.T) {
	t.Run("RFC 7638 3.1", func(t *testing.T) {
		n := "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
		j, err := newJWK(RS256, &rsa.PublicKey{N: new(big.Int).SetBytes(decode(t, n)), E: 65537})
		check.OK(t, err)
		check.Equal(t, "thumbprint", j.KeyID, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
	})
	t.Run("RFC 8037 A.3", func(t *testing.T) {
		x := "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
		j, err := newJWK(EdDSA, ed25519.PublicKey(decode(t, x)))
		check.OK(t, err)
		check.Equal(t, "thumbprint", j.KeyID, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
	})
}

func TestParseRefusesWhatTheRecordDoesNotSay(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	good, err := generate(ES256, 1, now, now)
	check.OK(t, err)
	other, err := generate(ES256, 1, now, now)
	check.OK(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	check.OK(t, err)
	p384DER, err := x509.MarshalPKCS8PrivateKey(p384)
	check.OK(t, err)

	for name, edit := range map[string]func(*Record){
		"not a key":          func(r *Record) { r.PrivateKey = []byte("hello") },
		"empty":              func(r *Record) { r.PrivateKey = nil },
		"another key":        func(r *Record) { r.PrivateKey = other.record.PrivateKey },
		"another curve":      func(r *Record) { r.PrivateKey = p384DER },
		"another algorithm":  func(r *Record) { r.Algorithm = RS256 },
		"no known algorithm": func(r *Record) { r.Algorithm = "none" },
		"another ID":         func(r *Record) { r.ID = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			r := good.record
			edit(&r)
			if _, err := parse(r); err == nil {
				t.Error("parse() = nil, want an error")
			}
		})
	}
	_, err = parse(good.record)
	check.OK(t, err)
}

func TestGenerateRefusesUnknownAlgorithm(t *testing.T) {
	if _, err := generate("HS256", 1, time.Time{}, time.Time{}); err == nil {
		t.Error("generate() = nil, want an error")
	}
}
