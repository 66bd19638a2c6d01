package keys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"testing"
	"time"

	"oauth-server/internal/check"
)

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
