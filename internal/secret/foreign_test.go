package secret

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/check"
)

const foreignPassword = "correct horse"

// foreignHashes are hashes of foreignPassword, as other programs write them.
func foreignHashes(t *testing.T) map[string]string {
	t.Helper()
	b, err := bcrypt.GenerateFromPassword([]byte(foreignPassword), bcrypt.MinCost)
	check.OK(t, err)
	salt := []byte("0123456789abcdef")
	key256, err := pbkdf2.Key(sha256.New, foreignPassword, salt, 1000, 32)
	check.OK(t, err)
	key512, err := pbkdf2.Key(sha512.New, foreignPassword, salt, 1000, 64)
	check.OK(t, err)
	raw, std := base64.RawStdEncoding.EncodeToString, base64.StdEncoding.EncodeToString
	return map[string]string{
		"bcrypt 2a":   string(b),
		"bcrypt 2b":   "$2b" + string(b[3:]),
		"bcrypt 2y":   "$2y" + string(b[3:]),
		"PHC":         fmt.Sprintf("$pbkdf2-sha256$i=1000,l=32$%s$%s", raw(salt), raw(key256)),
		"passlib":     fmt.Sprintf("$pbkdf2-sha256$1000$%s$%s", raw(salt), strings.ReplaceAll(raw(key256), "+", ".")),
		"Keycloak":    fmt.Sprintf("$pbkdf2-sha512$1000$%s$%s", std(salt), std(key512)),
		"Django":      fmt.Sprintf("pbkdf2_sha256$1000$%s$%s", salt, std(key256)),
		"argon2id":    fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", raw(salt), raw(argon2.IDKey([]byte(foreignPassword), salt, 1, 64, 1, 32))),
		"more memory": fmt.Sprintf("$argon2id$v=19$m=20480,t=1,p=1$%s$%s", raw(salt), raw(argon2.IDKey([]byte(foreignPassword), salt, 1, 20480, 1, 32))),
	}
}

func TestForeignHashes(t *testing.T) {
	p := NewPasswords(PasswordOptions{Concurrency: 2})
	for name, hash := range foreignHashes(t) {
		check.OK(t, CheckForeign(hash), name+" cannot be imported")
		if Foreign(hash) == "" {
			t.Errorf("%s is taken for ours", name)
		}
		for password, want := range map[string]bool{foreignPassword: true, foreignPassword + " ": false, "": false, strings.Repeat("x", MaxPasswordLength+1): false} {
			if got, err := p.Verify(t.Context(), hash, password); got != want || err != nil {
				t.Errorf("%s, %.20q: %v, %v", name, password, got, err)
			}
		}
	}
	own, err := p.Hash(t.Context(), foreignPassword)
	if err != nil || Foreign(own) != "" || CheckForeign(own) != nil {
		t.Errorf("our own: %q, %v", Foreign(own), err)
	}
}

// TestForeignBounds: a hash that is too expensive, or that proves nothing, cannot be imported and
// is not verified.
//
// Attack (guessing): Expensive or meaningless imported hashes. They cannot be imported.
// Verification is bounded, and the first correct password replaces the hash. Also
// secret.TestMemoryOfForeignHashes, accounts.TestImportedHash.
func TestForeignBounds(t *testing.T) {
	p := NewPasswords(PasswordOptions{Concurrency: 1})
	salt, key := strings.Repeat("A", 22), strings.Repeat("A", 43)
	for _, hash := range []string{
		"", "password", "$1$salt$key", "5f4dcc3b5aa765d61d8327deb882cf99",
		"$2b$15$" + strings.Repeat("a", 53), "$2b$31$" + strings.Repeat("a", 53), "$2b$10$short", "$2x$10$" + strings.Repeat("a", 53),
		"$pbkdf2-sha256$i=999$" + salt + "$" + key, "$pbkdf2-sha256$i=2000001$" + salt + "$" + key,
		"$pbkdf2-sha256$i=1500000$" + salt + "$" + strings.Repeat("A", 86), // two blocks
		"$pbkdf2-md5$i=1000$" + salt + "$" + key, "$pbkdf2-sha256$i=-1$" + salt + "$" + key, "$pbkdf2-sha256$i=1000$AAAA$" + key,
		"$pbkdf2-sha256$i=1000$" + salt + "$AAAA", "$pbkdf2-sha256$i=1000$%$" + key, "pbkdf2_sha256$1000$salt",
		"$" + strings.Repeat("a", maxPHC),
	} {
		if err := CheckForeign(hash); err == nil {
			t.Errorf("%q can be imported", hash)
		}
		_, err := p.Verify(t.Context(), hash, foreignPassword)
		check.ErrorIs(t, err, ErrMalformedHash)
	}
	for _, params := range []string{"m=131073,t=1,p=1", "m=131072,t=5,p=1", "m=262144,t=1,p=1"} {
		if err := CheckForeign("$argon2id$v=19$" + params + "$" + salt + "$" + key); err == nil {
			t.Errorf("%s can be imported", params)
		}
	}
}

// TestMemoryOfForeignHashes: imported hashes that need more memory than ours are computed one at a
// time.
func TestMemoryOfForeignHashes(t *testing.T) {
	p := NewPasswords(PasswordOptions{Concurrency: 4})
	running, most := make(chan struct{}, 4), 0
	p.key = func(_, _ []byte, _, _ uint32, _ uint8, n uint32) []byte {
		running <- struct{}{}
		most = max(most, len(running)) // the race detector reports two at once
		<-running
		return make([]byte, n)
	}
	hash := foreignHashes(t)["more memory"]
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := p.Verify(t.Context(), hash, foreignPassword)
			errs <- err
		}()
	}
	for range 8 {
		check.OK(t, <-errs)
	}
	if most != 1 {
		t.Errorf("%d at once", most)
	}
}

func TestParseDigest(t *testing.T) {
	want := DigestOf("x")
	h, b := hex.EncodeToString(want[:]), base64.StdEncoding.EncodeToString(want[:])
	for _, text := range []string{h, strings.ToUpper(h), "{SHA256}" + h, "{sha256}" + b, b, strings.TrimRight(b, "="), base64.URLEncoding.EncodeToString(want[:]), "sha256:" + h} {
		if got, err := ParseDigest(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "{SHA256}", h[1:], h + "00", b[1:], "{MD5}" + b, strings.Repeat("0", 64), "$2b$10$" + strings.Repeat("a", 53)} {
		if got, err := ParseDigest(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func FuzzForeign(f *testing.F) {
	f.Add("$2b$10$aaaa")
	f.Add("pbkdf2_sha256$1000$salt$AAAA")
	f.Add("$pbkdf2-sha512$i=1000,l=64$AAAAAAAAAAAAAAAA$AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseForeign(text)
		if (err == nil) != (h.matches != nil) {
			t.Errorf("%q: %v", text, err)
		}
		_, _ = ParseDigest(text)
	})
}
