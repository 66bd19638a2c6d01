package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/hex"
	"strconv"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"oauth-server/internal/check"
)

// TestSignatureOfRFC6979 is the vector of RFC 6979 A.2.5 for P-256 and SHA-256.
func TestSignatureOfRFC6979(t *testing.T) {
	secret, err := hex.DecodeString("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
	check.OK(t, err)
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret)
	check.OK(t, err)
	k := key{signer: private, method: jwt.SigningMethodES256}
	signature, err := k.signature("sample")
	check.OK(t, err)
	check.Equal(t, "signature", hex.EncodeToString(signature),
		"efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"+
			"f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
}

// TestSignaturesVerify signs so many texts that some numbers of the signatures begin with a zero byte.
func TestSignaturesVerify(t *testing.T) {
	signer, err := newSigner(ES256)
	check.OK(t, err)
	k := key{signer: signer, method: jwt.SigningMethodES256}
	padded := 0
	for i := 0; i < 100 || padded == 0; i++ {
		text := strconv.Itoa(i)
		signature, err := k.signature(text)
		check.OK(t, err)
		check.OK(t, k.method.Verify(text, signature, signer.Public()))
		if signature[0] == 0 || signature[usualSignature/2] == 0 {
			padded++
		}
	}
}
